"""The app's files: one page for all, a shell under a version of its content, icons as drawn, an honest outlook."""

import json
import re
from datetime import time
from typing import Any

import pytest
from django.test import Client

from accounts.domain.device_classes import DEVICE_CLASSES
from accounts.domain.nights import usual_week
from accounts.domain.windows import Window
from accounts.models import User
from accounts.services import idle_windows_replace
from tests.marketplace.pages.test_every_page_keeps_to_itself import Reader
from worker_protocol import app_shell
from worker_protocol.icons import FOLDER, ICONS, icon_png


@pytest.fixture
def client() -> Client:
    return Client()


@pytest.fixture
def ada(db) -> User:
    return User.objects.create_user("ada@example.org", time_zone="Europe/Berlin")


def test_the_page_is_the_same_for_everyone(client, ada):
    stranger = client.get("/device/").content
    client.force_login(ada)
    assert client.get("/device/").content == stranger
    assert b"ada@" not in stranger


def test_the_page_has_nothing_that_the_policy_would_block(client):
    reader = Reader()
    reader.feed(client.get("/device/").content.decode())
    assert reader.blocked == []
    assert len(reader.ids) == len(set(reader.ids))


def test_the_policy_lets_workers_and_sockets_of_this_site_alone(client):
    policy = client.get("/device/")["Content-Security-Policy"]
    assert "worker-src 'self';" in policy
    assert "connect-src 'self';" in policy
    assert "unsafe" not in policy


def test_the_manifest_names_icons_that_are_there(client):
    response = client.get("/device/manifest.webmanifest")
    assert response["Content-Type"] == "application/manifest+json"
    manifest = response.json()
    assert (manifest["start_url"], manifest["display"]) == ("/device/", "standalone")
    sizes = {(icon["sizes"], icon["purpose"]) for icon in manifest["icons"]}
    assert {("192x192", "any"), ("512x512", "any"), ("512x512", "maskable")} == sizes
    for icon in manifest["icons"]:
        assert (FOLDER / icon["src"].rpartition("/")[2]).exists()


def test_the_icons_are_as_the_code_draws_them():
    for icon in ICONS:
        drawn = icon_png(icon)
        assert (FOLDER / icon.name).read_bytes() == drawn, "run python -m worker_protocol.icons"
        assert drawn.startswith(b"\x89PNG")


def kept(client) -> dict[str, Any]:
    text = client.get("/device/sw.js").content.decode()
    return json.loads(text.partition("self.shell = ")[2].partition(";\n")[0])


def test_the_shell_is_the_page_and_its_files_and_nothing_of_anyones(client):
    addresses = kept(client)["addresses"]
    assert len(addresses) == len(set(addresses))
    assert "/static/worker_protocol/app/main.js" in addresses
    assert "/static/worker_protocol/runtime/executor.js" in addresses
    assert "/device/" in addresses
    assert [a for a in addresses if not re.match(r"/static/|/device/", a)] == []
    assert "/device/facts/" not in addresses
    assert "/device/sw.js" not in addresses


def test_every_module_that_the_app_imports_is_in_the_shell(client):
    addresses = set(kept(client)["addresses"])
    for folder in app_shell.FOLDERS:
        for path in (app_shell.STATIC / "worker_protocol" / folder).rglob("*.js"):
            for name in re.findall(r'from "(\.[^"]+)"', path.read_text()):
                target = (path.parent / name).resolve().relative_to(app_shell.STATIC.resolve())
                assert f"/static/{target}" in addresses, f"{path.name} imports {name}"


def test_the_version_follows_the_content(client, monkeypatch):
    version = kept(client)["version"]
    assert kept(client)["version"] == version
    app_shell._kept_shell.cache_clear()
    monkeypatch.setattr(app_shell, "SITE_FILES", ("site.css",))
    assert kept(client)["version"] != version
    app_shell._kept_shell.cache_clear()


def test_the_shell_is_small(client):
    """As it goes over the wire: 150 KB in all."""
    import gzip

    names = [a.removeprefix("/static/") for a in kept(client)["addresses"] if a.startswith("/static/")]
    sizes = {name: len(gzip.compress(app_shell._found(name).read_bytes())) for name in names}
    assert sum(sizes.values()) < 150_000, sizes


def test_a_stranger_is_told_of_the_usual_nights(client, db):
    facts = client.get("/device/facts/").json()
    assert (facts["account"], facts["own_windows"]) == (None, False)
    assert (facts["hours_a_night"], facts["nights_a_week"]) == (9, 7)
    assert set(facts["class_labels"]) == set(DEVICE_CLASSES)


def test_an_owner_is_told_of_their_own_windows(client, ada):
    idle_windows_replace(owner=ada, device_id=None, windows=[Window(4, time(22), time(2))])
    client.force_login(ada)
    response = client.get("/device/facts/")
    facts = response.json()
    assert facts["account"]["email"] == "ada@example.org"
    assert (facts["own_windows"], facts["hours_a_night"]) == (True, 4)
    assert "no-store" in response["Cache-Control"]


def test_the_codes_of_an_account_need_its_token(ada):
    client = Client(enforce_csrf_checks=True)
    client.force_login(ada)
    assert client.post("/api/pairing-codes/").status_code == 403
    token = client.get("/device/facts/").json()["account"]["csrf_token"]
    assert client.post("/api/pairing-codes/", headers={"X-CSRFToken": token}).status_code == 201


def test_windows_that_overlap_count_once():
    week = usual_week(
        [Window(6, time(22), time(7)), Window(0, time(0), time(1)), Window(6, time(23), time(1))]
    )
    assert (week.open_minutes, week.nights) == (9 * 60, 2)
    assert usual_week([]).hours_a_night == 0
