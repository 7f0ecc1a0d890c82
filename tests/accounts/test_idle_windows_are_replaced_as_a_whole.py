"""Setting idle windows, for one device or for all, and which of them apply."""

from datetime import UTC, time

import pytest
from django.db import IntegrityError, transaction

from accounts.domain.windows import NIGHTLY
from accounts.errors import DeviceNotFound, InvalidWindows
from accounts.models import DeviceNews, IdleWindow
from accounts.selectors import common_windows_of, device_profile, windows_of_device
from accounts.services import WindowSpec, idle_windows_replace
from accounts.services.windows import MAX_WINDOWS

LUNCH = WindowSpec(0, time(12), time(13))
NIGHT = WindowSpec(4, time(23), time(6, 30))


def applying(device) -> list[WindowSpec]:
    profile = device_profile(device.id)
    assert profile is not None
    return list(profile.windows)


def test_common_windows_apply_to_every_device_and_are_news_of_each(ada, bob, pair):
    mine, theirs = [pair(ada, "one"), pair(ada, "two")], pair(bob)
    DeviceNews.objects.all().delete()
    idle_windows_replace(owner=ada, device_id=None, windows=[NIGHT, LUNCH])
    assert [applying(d) for d in mine] == [[LUNCH, NIGHT]] * 2
    assert applying(theirs) == list(NIGHTLY)
    assert {n.payload["device_id"] for n in DeviceNews.objects.all()} == {str(d.id) for d in mine}


def test_a_devices_own_windows_replace_the_common_ones_for_it_alone(ada, pair):
    one, two = pair(ada, "one"), pair(ada, "two")
    DeviceNews.objects.all().delete()
    idle_windows_replace(owner=ada, device_id=one.id, windows=[LUNCH])
    assert (applying(one), applying(two)) == ([LUNCH], list(NIGHTLY))
    assert windows_of_device(one) == [LUNCH]
    assert [n.payload["device_id"] for n in DeviceNews.objects.all()] == [str(one.id)]


def test_a_device_that_gives_up_its_own_windows_follows_the_common_ones(ada, phone):
    idle_windows_replace(owner=ada, device_id=phone.id, windows=[LUNCH])
    idle_windows_replace(owner=ada, device_id=phone.id, windows=[])
    assert applying(phone) == list(NIGHTLY)


def test_an_owner_may_have_no_windows(ada, phone):
    idle_windows_replace(owner=ada, device_id=None, windows=[])
    assert applying(phone) == []


def test_nobody_sets_the_windows_of_anothers_device(bob, phone):
    with pytest.raises(DeviceNotFound):
        idle_windows_replace(owner=bob, device_id=phone.id, windows=[LUNCH])
    assert not IdleWindow.objects.filter(device=phone).exists()


@pytest.mark.parametrize(
    ("windows", "sentence"),
    [
        ([WindowSpec(7, time(1), time(2))], "weekday"),
        ([WindowSpec(-1, time(1), time(2))], "weekday"),
        ([WindowSpec(0, time(1, 0, 30), time(2))], "whole minutes"),
        ([WindowSpec(0, time(1), time(2, tzinfo=UTC))], "whole minutes"),
        ([LUNCH, WindowSpec(0, time(12), time(14))], "Monday at 12:00"),
        ([LUNCH] * (MAX_WINDOWS + 1), "at most 50"),
    ],
)
def test_bad_windows_leave_the_old_ones(ada, windows, sentence):
    idle_windows_replace(owner=ada, device_id=None, windows=[NIGHT])
    with pytest.raises(InvalidWindows, match=sentence):
        idle_windows_replace(owner=ada, device_id=None, windows=windows)
    assert common_windows_of(ada) == [NIGHT]


@pytest.mark.parametrize(
    ("device", "constraint"),
    [
        (
            False,
            "accounts_idlewindow.owner_id, accounts_idlewindow.weekday|idle_window_of_an_owner_starts_once",
        ),
        (
            True,
            "accounts_idlewindow.device_id, accounts_idlewindow.weekday|idle_window_of_a_device_starts_once",
        ),
    ],
)
def test_the_database_holds_that_a_window_starts_once(ada, phone, device, constraint):
    row = {
        "owner": ada,
        "device": phone if device else None,
        "weekday": 2,
        "starts": time(4),
        "ends": time(5),
    }
    IdleWindow.objects.create(**row)
    with pytest.raises(IntegrityError, match=constraint), transaction.atomic():
        IdleWindow.objects.create(**row)


def test_the_database_knows_seven_weekdays(ada):
    with pytest.raises(IntegrityError, match="idle_window_weekday_is_0_to_6"), transaction.atomic():
        IdleWindow.objects.create(owner=ada, weekday=7, starts=time(4), ends=time(5))
