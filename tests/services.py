"""The servers of a production deployment, as the tests that need them find them.

A test marked `services` runs when the servers listen, on their usual local ports or where the variables below say.
Where they do not, it is skipped with the reason; on CI (`CI=true`) it fails instead, so that nothing goes unchecked.

The suite itself runs on whatever database the settings name, SQLite by default. `run_on_postgresql` runs chosen tests
again on PostgreSQL, in a process of its own.
"""

import os
import socket
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

ROOT = Path(__file__).resolve().parent.parent
TIMEOUT_S = 600  # a bound on hanging, far beyond what a slow machine takes
ADDRESSES = {
    "postgresql": os.environ.get("TEST_POSTGRESQL_URL", "postgres://postgres@127.0.0.1:5432"),
    "redis": os.environ.get("TEST_REDIS_URL", "redis://127.0.0.1:6379"),
    "rabbitmq": os.environ.get("TEST_RABBITMQ_URL", "amqp://guest:guest@127.0.0.1:5672"),
}


def missing_servers(names: tuple[str, ...]) -> str | None:
    """Why tests that need these servers (all, if none is named) cannot run here, or None when they can."""
    missing = [name for name in names or tuple(ADDRESSES) if not _listens(ADDRESSES[name])]
    if not missing:
        return None
    places = ", ".join("{} at {}:{}".format(name, *_host_and_port(ADDRESSES[name])) for name in missing)
    return f"no server listens for {places}: start it, or name another in TEST_<SERVER>_URL"


def run_on_postgresql(*paths: str) -> None:
    """Run these test files or folders on a PostgreSQL database made for the purpose; fails with their output."""
    database = f"nightshift_{os.getpid()}"
    environ = {
        **os.environ,
        "NIGHTSHIFT_DATABASE_URL": f"{ADDRESSES['postgresql'].rstrip('/')}/{database}",
        "PGOPTIONS": "-c synchronous_commit=off",  # a crash of PostgreSQL itself is not among what is tested
    }
    command = [sys.executable, "-m", "pytest", "-q", "-m", "not services", "-p", "no:cacheprovider", *paths]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=environ,
        timeout=TIMEOUT_S,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-8_000:]


def _listens(url: str) -> bool:
    try:
        with socket.create_connection(_host_and_port(url), timeout=2):
            return True
    except OSError:
        return False


def _host_and_port(url: str) -> tuple[str, int]:
    address = urlsplit(url)
    assert address.hostname is not None, f"{url} names no host"
    assert address.port is not None, f"{url} names no port"
    return address.hostname, address.port
