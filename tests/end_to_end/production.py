"""The site as it runs in production: web processes behind a load balancer, dispatchers, workers, and their servers.

Each site has a database, a Redis database number and a RabbitMQ queue of its own, and leaves none of them behind.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, LiteralString
from urllib.parse import urlsplit
from uuid import uuid4

import httpx
import kombu
import psutil
import psycopg
import pytest
import redis
from psycopg import sql

from marketplace.demo.site import free_port
from tests.end_to_end.balancer import Balancer
from tests.services import ADDRESSES

START_TIMEOUT_S = 60
STOP_TIMEOUT_S = 10
REDIS_NUMBERS = range(15, 0, -1)
REDIS_CLAIM = "nightshift-test-claim"
# Longer than any test runs; a test that was killed frees its number by this.
REDIS_CLAIM_S = 900
WEB_PROCESSES = ("web-1", "web-2")


@dataclass
class ProductionSite:
    """Processes by name: start them, kill one without warning, start it again."""

    folder: Path
    root: Path
    servers: Mapping[str, str]
    processes: dict[str, "subprocess.Popen[bytes]"] = field(default_factory=dict)

    def __post_init__(self) -> None:
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        self._web_ports = {name: free_port() for name in WEB_PROCESSES}
        self._balancer = Balancer(port=port, backends=list(self._web_ports.values()))
        (self.folder / "logs").mkdir(exist_ok=True)
        self.environ: Mapping[str, str] = {
            **{name: value for name, value in os.environ.items() if not name.startswith("NIGHTSHIFT_")},
            "DJANGO_SETTINGS_MODULE": "marketplace.settings",
            "NIGHTSHIFT_VAR_DIR": str(self.folder),
            "NIGHTSHIFT_PUBLIC_URL": self.url,
            "NIGHTSHIFT_EMAIL": "file",
            **self.servers,
        }

    def start(self) -> None:
        """Start everything and wait until the site answers that it is healthy."""
        for name in (*WEB_PROCESSES, "dispatch-1", "dispatch-2", "worker-1"):
            self.start_process(name)
        self._balancer.start()
        deadline = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline:
            if all(_is_healthy(port) for port in self._web_ports.values()):
                return
            time.sleep(0.2)
        raise RuntimeError(f"The site did not start; {self.folder / 'logs'} says why.")

    def stop(self) -> None:
        self._balancer.stop()
        for process in self.processes.values():
            process.terminate()
        for name, process in self.processes.items():
            try:
                process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                self.kill_process(name)

    def start_process(self, name: str) -> None:
        with (self.folder / "logs" / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                [sys.executable, *self._command(name)],
                cwd=self.root,
                env=self.environ,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def kill_process(self, name: str) -> None:
        """End a process, and the processes it has, as a machine that loses power would."""
        os.killpg(self.processes[name].pid, signal.SIGKILL)
        self.processes[name].wait()

    def freeze(self, name: str) -> None:
        """Let a process and those it has do nothing for now."""
        os.killpg(self.processes[name].pid, signal.SIGSTOP)

    def thaw(self, name: str) -> None:
        os.killpg(self.processes[name].pid, signal.SIGCONT)

    def kill_children(self, name: str) -> None:
        for child in psutil.Process(self.processes[name].pid).children():
            child.kill()

    def has_busy_children(self, name: str) -> bool:
        """Whether a worker's child does a task: only then is it connected to the database."""
        port = urlsplit(self.servers["NIGHTSHIFT_DATABASE_URL"]).port
        children = psutil.Process(self.processes[name].pid).children()
        peers = [connection.raddr for child in children for connection in child.net_connections()]
        return any(peer and peer.port == port for peer in peers)

    def query(self, statement: LiteralString) -> list[Any]:
        """The first column of what a statement finds in the site's database."""
        with psycopg.connect(self.servers["NIGHTSHIFT_DATABASE_URL"]) as connection:
            return [row[0] for row in connection.execute(statement)]

    def _command(self, name: str) -> list[str]:
        match name.partition("-")[0]:
            case "web":
                return ["manage.py", "serve", "--web-only", "--port", str(self._web_ports[name])]
            case "dispatch":
                return ["manage.py", "dispatch"]
            case _:
                worker = ["-m", "celery", "-A", "marketplace", "worker"]
                return [*worker, "--concurrency", "2", "-n", f"{name}-{uuid4().hex[:8]}@%h"]


@contextmanager
def production_servers() -> Iterator[dict[str, str]]:
    """The settings that name a fresh database, Redis database and queue; all are gone afterwards."""
    name = f"nightshift_{uuid4().hex[:12]}"
    with _postgresql_database(name) as database_url, _redis_database() as redis_url, _rabbitmq_queue(name):
        yield {
            "NIGHTSHIFT_DATABASE_URL": database_url,
            "NIGHTSHIFT_REDIS_URL": redis_url,
            "NIGHTSHIFT_CELERY_BROKER_URL": ADDRESSES["rabbitmq"],
            "NIGHTSHIFT_CELERY_QUEUE": name,
        }


@contextmanager
def _postgresql_database(name: str) -> Iterator[str]:
    base = ADDRESSES["postgresql"].rstrip("/")
    with psycopg.connect(f"{base}/postgres", autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        try:
            yield f"{base}/{name}"
        finally:
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


@contextmanager
def _redis_database() -> Iterator[str]:
    for number in REDIS_NUMBERS:
        url = f"{ADDRESSES['redis'].rstrip('/')}/{number}"
        client = redis.Redis.from_url(url)
        if client.dbsize() == 0 and client.set(REDIS_CLAIM, os.getpid(), nx=True, ex=REDIS_CLAIM_S):
            try:
                yield url
            finally:
                client.flushdb()
                client.close()
            return
        client.close()
    pytest.fail("every Redis database is in use: flush one, or name another server in TEST_REDIS_URL")


@contextmanager
def _rabbitmq_queue(name: str) -> Iterator[None]:
    try:
        yield
    finally:
        with kombu.Connection(ADDRESSES["rabbitmq"]) as connection:
            kombu.Queue(name, channel=connection.default_channel).delete()
            kombu.Exchange(name, channel=connection.default_channel).delete()


def _is_healthy(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/healthz/", timeout=5).is_success
    except httpx.TransportError:
        return False
