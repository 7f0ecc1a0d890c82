"""The embedded site as a process of its own, in a folder of its own."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import httpx
import psutil

START_TIMEOUT_S = 60
STOP_TIMEOUT_S = 10


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Site:
    """A server process: start it, kill it, start it again on the same port and data."""

    def __init__(self, *, folder: Path, root: Path, serve: Sequence[str] = ("manage.py", "serve")) -> None:
        """`serve` is what the interpreter is given, before the port, to serve the site."""
        self._serve = serve
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.root = root
        self.log = folder / "logs" / "server.log"
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self.peak_memory_bytes = 0
        self.environ: Mapping[str, str] = {
            **{name: value for name, value in os.environ.items() if not name.startswith("NIGHTSHIFT_")},
            "DJANGO_SETTINGS_MODULE": "marketplace.settings",
            "NIGHTSHIFT_VAR_DIR": str(folder),
            "NIGHTSHIFT_PUBLIC_URL": self.url,
            "NIGHTSHIFT_EMAIL": "file",
        }
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the server and wait until it answers."""
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, *self._serve, "--port", str(self.port)],
                cwd=self.root,
                env=self.environ,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is for the demo, which then stops it in order
            )
        deadline = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                break
            try:
                if httpx.get(f"{self.url}/healthz/", timeout=20).is_success:
                    return
            except httpx.TransportError:
                pass  # it does not listen yet
            time.sleep(0.1)
        raise RuntimeError(f"The site did not start; {self.log} says why.")

    def sample_memory(self) -> None:
        """Remember the most resident memory the server was seen to use."""
        if self._process is not None and self._process.poll() is None:
            rss_bytes = psutil.Process(self._process.pid).memory_info().rss
            self.peak_memory_bytes = max(self.peak_memory_bytes, rss_bytes)

    def kill(self) -> None:
        """End the server without any warning, as a power cut would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def stop(self) -> None:
        if self._process is None or self._process.poll() is not None:
            return
        self._process.terminate()
        try:
            self._process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.kill()
