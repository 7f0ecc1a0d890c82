"""What a night of a device would earn: public, bounded, and resting on what was measured."""

import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client

from common.clock import utc_now
from scheduler.models import Lease, Spell
from scheduler.workload import paid_share
from tests.marketplace.cast import buyer, person, priced_job, round_closes
from tests.marketplace.pages.scenes import device_of

pytestmark = pytest.mark.django_db
ADDRESS = "/api/estimates/device/"


@pytest.fixture(autouse=True)
def _empty_cache():
    cache.clear()


def estimate(**asked) -> Any:
    answer = Client().get(ADDRESS, {"device_class": "laptop-cpu", "hours": 8, **asked})
    assert answer.status_code == 200, answer.content
    return answer.json()


def free_for(device, hours: float) -> None:
    now = utc_now()
    Spell.objects.create(
        id=uuid.uuid4(), device_id=device.pk, began_at=now - timedelta(hours=hours), ended_at=now
    )


def test_anyone_may_ask_and_without_measurements_the_low_end_is_nothing():
    told = estimate()
    assert (told["low_microusd"], told["high_microusd"], told["paid_share"]) == (0, 2_304_000, None)
    assert "not measured yet" in told["basis"]


def test_the_low_end_is_what_devices_of_the_class_were_paid_of_late():
    ann = person("ann")
    device = device_of(ann, "Laptop", device_class="laptop-cpu")
    free_for(device, 10)
    round_closes(priced_job(buyer()), {ann: 100})
    Lease.objects.update(metered_gpu_us=2 * 3_600 * 10**6)
    told = estimate()
    assert told["paid_share"] == pytest.approx(0.2, rel=1e-3)
    assert told["low_microusd"] == pytest.approx(0.2 * told["high_microusd"], rel=1e-3)


def test_time_that_was_blocked_or_long_ago_does_not_count():
    device = device_of(person("ann"), "Laptop", device_class="laptop-cpu")
    now = utc_now()
    free_for(device, 7)
    Spell.objects.create(
        id=uuid.uuid4(),
        device_id=device.pk,
        blocked="too_hot",
        began_at=now - timedelta(hours=90),
        ended_at=now - timedelta(hours=50),
    )
    assert paid_share("laptop-cpu", since=now - timedelta(days=28), now=now) is None


@pytest.mark.parametrize(
    ("asked", "code", "field"),
    [
        ({"device_class": "toaster"}, "estimate_invalid", "device_class"),
        ({"hours": 25}, "estimate_invalid", "hours"),
        ({"hours": 0}, "estimate_invalid", "hours"),
        ({"hours": "nan"}, "invalid_input", "hours"),
        ({"hours": "all"}, "invalid_input", "hours"),
        ({"device_class": ""}, "invalid_input", "device_class"),
    ],
)
def test_what_cannot_be_estimated_is_refused_by_name(asked, code, field):
    answer = Client().get(ADDRESS, {"device_class": "laptop-cpu", "hours": 8, **asked})
    assert answer.status_code == 400
    assert (answer.json()["code"], answer.json()["field"]) == (code, field)


def test_a_stranger_who_asks_too_often_is_told_to_wait():
    for _ in range(60):
        estimate()
    answer = Client().get(f"{ADDRESS}?device_class=laptop-cpu&hours=8")
    assert answer.status_code == 429
    assert "Retry-After" in answer.headers
