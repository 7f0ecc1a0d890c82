"""One site for these tests; each test begins with a browser that knows nothing.

A test fails when the browser had to stop anything that the policy forbids, or a script of the page threw.
"""

import json
import os
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.phone.shell.phone import Phone

ROOT = Path(__file__).parents[3]
CODES = 16


class Site:
    """The site's process; `code()` is a pairing code that nobody has used."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.address = f"http://127.0.0.1:{port}"
        self.database = folder / "var" / "nightshift.sqlite3"
        environ = {
            **os.environ,
            "NIGHTSHIFT_VAR_DIR": str(folder / "var"),
            "NIGHTSHIFT_PUBLIC_URL": self.address,
        }
        with (folder / "site.log").open("w") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.phone.shell.site", str(port), str(CODES)],
                cwd=ROOT, env=environ, stdout=subprocess.PIPE, stderr=errors, text=True,
            )  # fmt: skip
        assert self.process.stdout is not None
        with self.process.stdout as told:
            first = told.readline()
        if not first:
            self.process.wait()
            raise AssertionError((folder / "site.log").read_text())
        self._codes: list[str] = json.loads(first)["codes"]
        self._given = 0

    def code(self) -> str:
        self._given += 1
        return self._codes[self._given - 1]

    def end(self) -> None:
        self.process.terminate()
        self.process.wait()

    def expire(self, code: str) -> None:
        """As if ten minutes had passed. Codes are numbered as they were made."""
        with sqlite3.connect(self.database) as database:
            made = self._codes.index(code) + 1
            database.execute("update accounts_pairingcode set expires_at = '2020-01-01' where id = ?", [made])


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    site = Site(tmp_path_factory.mktemp("site"))
    yield site
    site.end()


@pytest.fixture
def phone(site: Site, chromium: Browser) -> Iterator[Phone]:
    with chromium.new_context() as context:
        phone = Phone(context, site.address)
        yield phone
        assert phone.complaints == []
