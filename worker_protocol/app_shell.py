"""The phone app's shell: the files that make it up, under a version that follows from their content.

The service worker keeps these files and no others, so that the app opens without a network. The version is in the
worker's own text: when any file changes, browsers see a new worker and fetch the new shell as a whole.
"""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath

from django.conf import settings
from django.contrib.staticfiles import finders
from django.template.loader import render_to_string
from django.templatetags.static import static
from django.urls import reverse

STATIC = Path(__file__).parent / "static"
FOLDERS = ("app", "worker", "wire", "runtime")
SUFFIXES = {".js", ".css", ".png"}
# Of the site's own files: its look, and the moon.
SITE_FILES = ("site.css", "moon.svg")
APP = "worker_protocol/app/"
SERVICE_WORKER = "worker_protocol/app/service-worker.js"
DIGEST_CHARACTERS = 16


@dataclass(frozen=True, slots=True)
class AppShell:
    version: str
    page: str  # the app's one HTML document; the same for everyone
    addresses: tuple[str, ...]  # of everything to keep, the page first


def app_shell() -> AppShell:
    """The shell as it is on disk; read once a process, but for a site that is being worked on."""
    return _read_shell() if settings.DEBUG else _kept_shell()


def service_worker_text() -> str:
    """The service worker with the list of what it is to keep."""
    shell = app_shell()
    kept = {"version": shell.version, "page": reverse("device-app"), "addresses": shell.addresses}
    return f"self.shell = {json.dumps(kept)};\n{_text(SERVICE_WORKER)}"


@cache
def _kept_shell() -> AppShell:
    return _read_shell()


def _read_shell() -> AppShell:
    names = [*SITE_FILES, *_own_files()]
    page = render_to_string("worker_protocol/device.html", {"modules": _app_modules(names)})
    addresses = [
        reverse("device-app"),
        reverse("device-manifest"),
        reverse("device-worker"),
        *map(static, names),
    ]
    version = _digest([*names, SERVICE_WORKER], page.encode())
    return AppShell(version=version, page=page, addresses=tuple(addresses))


def _app_modules(names: list[str]) -> list[str]:
    """The page's modules, for the browser to fetch at once instead of import by import."""
    return [static(name) for name in names if name.startswith(APP) and name.endswith(".js")]


def _digest(names: list[str], *others: bytes) -> str:
    digest = hashlib.sha256()
    for part in (*others, *(name.encode() + b"\0" + _found(name).read_bytes() for name in names)):
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()[:DIGEST_CHARACTERS]


def _own_files() -> list[str]:
    return sorted(_walk())


def _walk() -> Iterator[str]:
    for folder in FOLDERS:
        for path in (STATIC / "worker_protocol" / folder).rglob("*"):
            name = str(PurePosixPath(path.relative_to(STATIC)))
            if path.suffix in SUFFIXES and name != SERVICE_WORKER:
                yield name


def _text(name: str) -> str:
    return _found(name).read_text()


def _found(name: str) -> Path:
    found = finders.find(name)
    if not isinstance(found, str):
        raise FileNotFoundError(f"The static file {name} is missing; the app cannot be served without it.")
    return Path(found)
