"""Processes and sockets as in life: daphne, the dispatcher, agents; a server killed, a device started twice."""

import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.worker_protocol.real_site import ROUNDS

pytestmark = [pytest.mark.end_to_end, pytest.mark.slow, pytest.mark.timeout(240)]

ROOT = Path(__file__).parents[2]
PATIENCE_S = 120


class World:
    """A site's processes, its devices' processes, and a look into its database."""

    def __init__(self, folder: Path, *, site_module: str = "tests.worker_protocol.real_site") -> None:
        self.site_module = site_module
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.folder = folder
        self.processes: list[subprocess.Popen[str]] = []

    def start_site(self) -> subprocess.Popen[str]:
        return self.start(self.site_module, str(self.port), "2", log="site")

    def start_agent(self, name: str, *arguments: str) -> subprocess.Popen[str]:
        state = str(self.folder / name)
        command = ["worker_protocol.agent", "--server", self.url, "--state", state, *arguments]
        return self.start(*command, log=name)

    def start(self, *command: str, log: str) -> subprocess.Popen[str]:
        environ = {
            **os.environ,
            "NIGHTSHIFT_VAR_DIR": str(self.folder / "var"),
            "NIGHTSHIFT_PUBLIC_URL": self.url,
            "OMP_NUM_THREADS": "1",
        }
        with (self.folder / f"{log}.log").open("a") as errors:
            process = subprocess.Popen(
                [sys.executable, "-m", *command],
                cwd=ROOT,
                env=environ,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        self.processes.append(process)
        return process

    def ask(self, query: str) -> list[tuple[Any, ...]]:
        with sqlite3.connect(self.folder / "var" / "nightshift.sqlite3", timeout=20) as database:
            return database.execute(query).fetchall()

    def wait_until(self, condition: Callable[[], Any]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < deadline, self.logs()
            time.sleep(0.2)

    def logs(self) -> str:
        return "\n".join(f"--- {log.name}\n{log.read_text()[-2000:]}" for log in self.folder.glob("*.log"))

    def end(self) -> None:
        for process in self.processes:
            process.kill()
            process.communicate()

    def rounds_closed(self) -> int:
        return len(self.ask("select 1 from scheduler_round where state = 'closed'"))


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path)
    yield world
    world.end()


def test_a_run_outlives_its_server_and_a_device_that_is_started_twice(world):
    site = world.start_site()
    made = json.loads(site.stdout.readline())
    first = world.start_agent("first", "--pair", made["codes"][0])
    second = world.start_agent("second", "--pair", made["codes"][1], "--throttle", "0.5")
    world.wait_until(lambda: world.rounds_closed() >= 1)

    site.kill()
    site.wait()
    site = world.start_site()
    world.wait_until(lambda: world.rounds_closed() >= 2)

    twin = world.start_agent("first")  # the same key: the newer process takes over
    assert first.wait(PATIENCE_S) == 1
    assert "only its newest socket" in (world.folder / "first.log").read_text()

    world.wait_until(lambda: world.ask("select state from scheduler_run") != [("active",)])
    assert world.ask("select state, ended_because from scheduler_run") == [("finished", "epochs")]
    assert world.rounds_closed() == ROUNDS
    accepted = world.ask(
        "select count(*), count(distinct shard_id) from scheduler_lease where state = 'accepted'"
    )
    assert accepted == [(2 * ROUNDS, 2 * ROUNDS)]

    for agent in (twin, second):
        agent.send_signal(signal.SIGTERM)
    assert [twin.wait(20), second.wait(20)] == [0, 0], world.logs()
