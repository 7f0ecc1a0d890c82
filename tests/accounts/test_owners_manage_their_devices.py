"""Rename, pause, resume, policy, remove: each is its owner's alone, and news where work may be affected."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import IntegrityError, transaction

from accounts.domain.profile import Policy
from accounts.errors import DeviceNotFound, InvalidName, InvalidPolicy
from accounts.models import Device, DeviceNews
from accounts.selectors import device_by_key, device_of, device_profile, device_profiles, devices_of
from accounts.services import (
    device_pause,
    device_remove,
    device_rename,
    device_resume,
    device_seen,
    device_set_policy,
    devices_pause_all,
    devices_resume_all,
)

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
POLICY: dict[str, Any] = {
    "battery_floor_percent": 50,
    "charging_only": False,
    "wifi_only": False,
    "too_hot_celsius": 45,
}

OWNERS_ACTIONS = {
    "rename": lambda owner, device: device_rename(owner=owner, device_id=device.id, name="Mine"),
    "pause": lambda owner, device: device_pause(owner=owner, device_id=device.id),
    "resume": lambda owner, device: device_resume(owner=owner, device_id=device.id),
    "policy": lambda owner, device: device_set_policy(owner=owner, device_id=device.id, **POLICY),
    "remove": lambda owner, device: device_remove(owner=owner, device_id=device.id),
}


@pytest.fixture
def news(phone):
    """The kinds of news about Ada's phone since it was paired."""
    DeviceNews.objects.all().delete()

    def kinds() -> list[str]:
        rows = list(DeviceNews.objects.all())
        assert all(row.payload == {"device_id": str(phone.id)} for row in rows)
        return [row.kind for row in rows]

    return kinds


def test_pausing_all_tells_the_scheduler_of_those_that_were_not_paused_only(ada, bob, phone, news, pair):
    pair(bob)
    DeviceNews.objects.all().delete()
    assert devices_pause_all(owner=ada) == 1
    assert devices_pause_all(owner=ada) == 0
    assert news() == ["changed"]
    assert devices_resume_all(owner=ada) == 1
    assert news() == ["changed", "changed"]


@pytest.mark.parametrize("action", OWNERS_ACTIONS.values(), ids=OWNERS_ACTIONS)
def test_nobody_touches_the_device_of_another(bob, phone, news, action):
    before = Device.objects.values().get()
    with pytest.raises(DeviceNotFound):
        action(bob, phone)
    assert Device.objects.values().get() == before
    assert news() == []


@pytest.mark.parametrize("action", OWNERS_ACTIONS.values(), ids=OWNERS_ACTIONS)
def test_a_removed_device_is_not_found_by_its_owner_either(ada, phone, action):
    device_remove(owner=ada, device_id=phone.id)
    with pytest.raises(DeviceNotFound):
        action(ada, phone)


def test_a_rename_is_no_news(ada, phone, news):
    assert device_rename(owner=ada, device_id=phone.id, name=" Kitchen tablet ").name == "Kitchen tablet"
    assert device_of(ada, phone.id).name == "Kitchen tablet"
    assert news() == []


def test_a_device_needs_a_readable_name(ada, phone):
    with pytest.raises(InvalidName):
        device_rename(owner=ada, device_id=phone.id, name="a\u202eb")


def test_pausing_twice_is_news_once(ada, phone, news):
    assert device_pause(owner=ada, device_id=phone.id).state == "paused"
    assert device_pause(owner=ada, device_id=phone.id).state == "paused"
    assert news() == ["changed"]


def test_a_resumed_device_is_active_again(ada, phone, news):
    device_pause(owner=ada, device_id=phone.id)
    assert device_resume(owner=ada, device_id=phone.id).state == "active"
    assert device_resume(owner=ada, device_id=phone.id).state == "active"
    assert news() == ["changed", "changed"]


def test_a_removed_device_is_gone_from_lists_but_known_as_removed(ada, phone, news):
    device_remove(owner=ada, device_id=phone.id)
    assert not devices_of(ada).exists()
    profile = device_profile(phone.id)
    assert profile is not None
    assert profile.state == "removed"
    assert news() == ["removed"]


def test_news_wakes_the_dispatcher_once_it_is_committed(
    ada, phone, monkeypatch, django_capture_on_commit_callbacks
):
    woken: list[str] = []
    monkeypatch.setattr("common.wake.wake", woken.append)
    with django_capture_on_commit_callbacks(execute=True):
        device_pause(owner=ada, device_id=phone.id)
        assert woken == []
    assert woken == ["nightshift.dispatcher"]


def test_a_new_policy_is_in_force_and_news(ada, phone, news):
    device_set_policy(owner=ada, device_id=phone.id, **POLICY)
    profile = device_profile(phone.id)
    assert profile is not None
    assert profile.policy == Policy(**POLICY)
    assert news() == ["changed"]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("battery_floor_percent", -1),
        ("battery_floor_percent", 96),
        ("too_hot_celsius", 29),
        ("too_hot_celsius", 61),
    ],
)
def test_a_threshold_out_of_bounds_changes_nothing(ada, phone, news, field, value):
    with pytest.raises(InvalidPolicy) as refused:
        device_set_policy(owner=ada, device_id=phone.id, **{**POLICY, field: value})
    assert refused.value.field == field
    assert device_of(ada, phone.id).battery_floor_percent == 40
    assert news() == []


@pytest.mark.parametrize(
    ("change", "constraint"),
    [
        ({"battery_floor_percent": 96}, "device_battery_floor_leaves_room"),
        ({"speed_factor": 0}, "device_speed_factor_is_positive"),
    ],
)
def test_the_database_holds_the_bounds(phone, change, constraint):
    with pytest.raises(IntegrityError, match=constraint), transaction.atomic():
        Device.objects.update(**change)


def test_being_seen_is_noted_at_most_once_a_minute(phone):
    seen = []
    for seconds in (0, 30, 60):
        device_seen(device_id=phone.id, now=NOW + timedelta(seconds=seconds))
        seen.append(Device.objects.get().last_seen_at)
    assert seen == [NOW, NOW, NOW + timedelta(seconds=60)]


@pytest.mark.parametrize(("measured", "kept"), [(2.5, 2.5), (None, 1.0), (float("nan"), 1.0), (-1.0, 1.0)])
def test_a_newly_measured_speed_is_kept_if_it_makes_sense(phone, measured, kept):
    device_seen(device_id=phone.id, now=NOW, speed_factor=measured)
    assert Device.objects.get().speed_factor == kept


def test_a_device_is_found_by_its_key(phone):
    assert device_by_key(bytes(phone.public_key)) == phone
    assert device_by_key(b"x" * 32) is None


def test_many_profiles_take_two_queries(ada, bob, pair, django_assert_num_queries):
    devices = [pair(ada), pair(ada), pair(bob)]
    with django_assert_num_queries(2):
        profiles = device_profiles([*(d.id for d in devices), uuid4()])
    assert set(profiles) == {d.id for d in devices}
    assert str(profiles[devices[2].id].time_zone) == "America/New_York"
