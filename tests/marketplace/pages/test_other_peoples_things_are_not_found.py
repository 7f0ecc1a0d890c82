"""Every address that names an object answers someone else as if there were none."""

import uuid

import pytest
from django.test import Client

from accounts.models import Device
from marketplace.models import Dataset, Job
from tests.marketplace import cast
from tests.marketplace.pages import scenes

SEEN = [
    "jobs/{job}/",
    "jobs/{job}/progress/",
    "jobs/{job}/model/pt2/",
    "datasets/{dataset}/",
    "devices/{device}/",
]
DONE = [
    "jobs/{job}/confirm/",
    "jobs/{job}/cancel/",
    "datasets/{dataset}/delete/",
    "devices/{device}/rename/",
    "devices/{device}/policy/",
    "devices/{device}/windows/",
    "devices/{device}/pause/",
    "devices/{device}/resume/",
    "devices/{device}/remove/",
]
FORM = {
    "name": "Mine now",
    "battery_floor_percent": 10,
    "too_hot_celsius": 50,
    "windows-TOTAL_FORMS": 0,
    "windows-INITIAL_FORMS": 0,
}


@pytest.fixture
def adas(ada) -> dict[str, uuid.UUID]:
    job = cast.quoted_job(ada)
    return {"job": job.pk, "dataset": job.dataset_id, "device": scenes.device_of(ada, "Laptop").pk}


def rows() -> list[object]:
    return [list(model.objects.order_by("pk").values()) for model in (Job, Dataset, Device)]


def test_to_see(bobs_browser, adas):
    for path in SEEN:
        assert bobs_browser.get("/" + path.format(**adas)).status_code == 404, path


def test_to_change(bobs_browser, adas):
    before = rows()
    for path in DONE:
        assert bobs_browser.post("/" + path.format(**adas), FORM).status_code == 404, path
    assert rows() == before


def test_lists_do_not_hold_them(bobs_browser, adas):
    for path in ("/jobs/", "/datasets/", "/devices/", "/devices/list/", "/wallet/"):
        content = bobs_browser.get(path).content.decode()
        assert not any(str(key) in content for key in adas.values()), path
        assert "two clouds" not in content


def test_changes_need_the_forms_token_and_a_post(ada, adas):
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(ada)
    for path in DONE:
        assert strict.post("/" + path.format(**adas), FORM).status_code == 403, path
        assert strict.get("/" + path.format(**adas)).status_code == 405, path
