"""Pages load nothing foreign, carry no inline script or style, and show times on the reader's clock."""

import re
from datetime import UTC, datetime
from html.parser import HTMLParser

import pytest
from django.test import Client

from marketplace.models import Job
from tests.marketplace import cast
from tests.marketplace.pages import scenes


class Reader(HTMLParser):
    """Collects what a strict policy would block, and ids that are there twice."""

    def __init__(self) -> None:
        super().__init__()
        self.blocked: list[str] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.ids += [value for name, value in attrs if name == "id" and value]
        if tag == "style" or (tag == "script" and "src" not in values):
            self.blocked.append(f"<{tag}>")
        for name, value in attrs:
            foreign = name in ("src", "href", "action") and re.match(r"(https?:|//|javascript:)", value or "")
            if name == "style" or name.startswith("on") or foreign:
                self.blocked.append(f"{tag} {name}={value}")


@pytest.fixture
def paths(ada) -> list[str]:
    owner = cast.person("otto")
    scenes.fleet(ada)
    job = scenes.trained(cast.quoted_job(ada), rounds=2, owner=owner)
    quoted = cast.quoted_job(ada, dataset=job.dataset)
    device = ada.devices.first()
    return [
        "/jobs/", "/jobs/new/", f"/jobs/{job.pk}/", f"/jobs/{quoted.pk}/", "/datasets/",
        f"/datasets/{job.dataset_id}/", "/devices/", f"/devices/{device.pk}/", "/wallet/",
    ]  # fmt: skip


def test_no_page_has_anything_that_the_policy_would_block(browser, paths):
    for path in paths:
        reader = Reader()
        reader.feed(browser.get(path).content.decode())
        assert reader.blocked == [], path
        assert len(reader.ids) == len(set(reader.ids)), path


def test_the_policy_names_this_site_alone(browser):
    policy = browser.get("/jobs/")["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy


def test_only_the_page_of_the_api_may_style_itself(db):
    assert "style-src 'self' 'unsafe-inline'" in Client().get("/api/docs/")["Content-Security-Policy"]
    assert "unsafe" not in Client().get("/nowhere/")["Content-Security-Policy"]


def test_the_page_of_the_api_has_no_inline_script(db):
    reader = Reader()
    reader.feed(Client().get("/api/docs/").content.decode())
    assert "<script>" not in reader.blocked


def test_times_are_on_the_readers_clock(browser, ada):
    cast.quoted_job(ada)
    Job.objects.update(created_at=datetime(2026, 7, 1, 22, 30, tzinfo=UTC))
    assert b"2 Jul, 00:30" in browser.get("/jobs/").content


def test_the_next_reader_has_a_clock_of_their_own(browser, bobs_browser, ada, bob):
    browser.get("/jobs/")
    cast.quoted_job(bob)
    Job.objects.update(created_at=datetime(2026, 7, 1, 22, 30, tzinfo=UTC))
    assert b"1 Jul, 22:30" in bobs_browser.get("/jobs/").content
