"""The owner's devices: agent processes, each with its own state folder and speed."""

import contextlib
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

STOP_TIMEOUT_S = 10


@dataclass(frozen=True)
class DeviceSpec:
    name: str
    throttle: float  # works at this fraction of this machine's speed


class DeviceProcess:
    """One agent process, paired with a one-time code."""

    def __init__(self, spec: DeviceSpec, *, server: str, code: str, folder: Path, root: Path) -> None:
        self.spec = spec
        self.log = folder / "logs" / f"{spec.name}.log"
        arguments = {
            "--server": server,
            "--pair": code,
            "--state": str(folder / "devices" / spec.name),
            "--name": spec.name,
            "--throttle": str(spec.throttle),
        }
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "worker_protocol.agent",
                    *(w for pair in arguments.items() for w in pair),
                ],
                cwd=root,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def kill(self) -> None:
        """As a battery that dies: no good-bye, no hand-back."""
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        """As Ctrl-C does: its lease is handed back first."""
        if self.process.poll() is None:
            self.process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(STOP_TIMEOUT_S)
        if self.process.poll() is None:
            self.kill()
