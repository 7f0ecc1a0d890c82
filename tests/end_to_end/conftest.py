"""A real site and real devices: processes, sockets and a database of their own."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

import pytest

from marketplace.demo.client import Client
from marketplace.demo.devices import DeviceProcess, DeviceSpec
from marketplace.demo.site import Site
from tests.end_to_end.production import ProductionSite, production_servers

ROOT = Path(__file__).resolve().parents[2]

AnySite = TypeVar("AnySite", Site, ProductionSite)


@dataclass
class World(Generic[AnySite]):
    """The site, its people's tokens, and the devices paired so far."""

    site: AnySite
    folder: Path
    tokens: dict[str, str]
    devices: dict[str, DeviceProcess] = field(default_factory=dict)

    def client(self, who: str) -> Client:
        return Client(self.site.url, self.tokens[who])

    def pair(self, name: str, *, throttle: float = 1.0) -> DeviceProcess:
        with self.client("owner") as owner:
            code = owner.post("pairing-codes/")["code"]
        self.devices[name] = DeviceProcess(
            DeviceSpec(name, throttle), server=self.site.url, code=code, folder=self.folder, root=ROOT
        )
        return self.devices[name]

    def manage(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run `manage.py` against the site's database."""
        return subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=ROOT,
            env=dict(self.site.environ),
            capture_output=True,
            text=True,
            check=False,
        )

    def logs(self) -> str:
        """The end of every process's log, for the message of a failed test."""
        files = sorted((self.folder / "logs").glob("*.log"))
        return "\n".join(f"--- {file.name}\n{file.read_text()[-3000:]}" for file in files)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World[Site]]:
    """The embedded site."""
    with world_of(Site(folder=tmp_path, root=ROOT), tmp_path) as world:
        yield world


@pytest.fixture
def production(tmp_path: Path) -> Iterator[World[ProductionSite]]:
    """The site of many processes, on PostgreSQL, Redis and RabbitMQ."""
    with (
        production_servers() as servers,
        world_of(ProductionSite(folder=tmp_path, root=ROOT, servers=servers), tmp_path) as world,
    ):
        yield world


@contextmanager
def world_of(site: AnySite, folder: Path) -> Iterator[World[AnySite]]:
    """A started site with the demo's people; it and its devices end with the block."""
    cast = subprocess.run(
        [sys.executable, "-m", "tests.end_to_end.cast"],
        cwd=ROOT,
        env=dict(site.environ),
        capture_output=True,
        text=True,
        check=True,
    )
    world = World(site=site, folder=folder, tokens=json.loads(cast.stdout))
    try:
        site.start()
        yield world
    finally:
        for device in world.devices.values():
            device.stop()
        site.stop()


def wait_until(
    condition: Callable[[], Any], *, world: World[Any], timeout_s: float = 90, every_s: float = 0.2
) -> Any:
    """Poll until `condition` gives something true; fail with the logs otherwise."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        if value := condition():
            return value
        time.sleep(every_s)
    pytest.fail(f"did not happen within {timeout_s} s\n{world.logs()}")
