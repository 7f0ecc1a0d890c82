"""What an owner reads of a device: pure words from what is known of it."""

import uuid
from datetime import UTC, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from accounts.domain.profile import DeviceProfile, Policy
from accounts.domain.windows import NIGHTLY, Window
from marketplace.pages.device_words import Contact, DeviceWords, ago, device_words
from scheduler.activity import IDLE, Activity, Work

BERLIN = ZoneInfo("Europe/Berlin")
MIDNIGHT = datetime(2026, 12, 1, 23, 0, tzinfo=UTC)  # in Berlin, a Wednesday
NOON = datetime(2026, 12, 2, 11, 0, tzinfo=UTC)
HERE = Contact(connected=True)


def words(
    *, now: datetime = MIDNIGHT, contact: Contact = HERE, activity: Activity = IDLE, **changes: Any
) -> DeviceWords:
    facts: dict[str, Any] = {
        "id": uuid.UUID(int=1),
        "owner_id": 1,
        "state": "active",
        "device_class": "laptop-cpu",
        "speed_factor": 1.0,
        "policy": Policy(battery_floor_percent=40),
        "windows": tuple(NIGHTLY),
        "time_zone": BERLIN,
    }
    return device_words(
        profile=DeviceProfile(**{**facts, **changes}), contact=contact, activity=activity, now=now
    )


def test_at_work_it_says_how_far_it_is():
    working = words(activity=Activity(work=Work(step=12, local_steps=20, granted_at=MIDNIGHT)))
    assert working == DeviceWords("Working", "busy", "Training: step 12 of 20.")


def test_waiting_it_says_how_long_its_window_stays_open():
    assert words() == DeviceWords("Ready", "good", "Waits for work; its window is open until 07:00.")


def test_outside_its_window_it_says_when_that_opens():
    assert words(now=NOON).sentence == "Outside its idle windows: opens at 22:00."


def test_windows_that_have_just_been_changed_count_at_once():
    assert words(contact=Contact(True, "outside_window")).badge == "Ready"


def test_a_battery_that_is_low_says_the_charge_in_force_at_which_it_goes_on():
    resting = words(contact=Contact(True, "battery_low"), policy=Policy(battery_floor_percent=35))
    assert resting.badge == "Resting"
    assert resting.sentence == "Battery below 35\u00a0%: resumes at 40\u00a0%."


def test_paused_it_says_so_whatever_else_is_true():
    assert words(state="paused", contact=Contact(True, "battery_low"), now=NOON).badge == "Paused"


def test_benched_it_says_until_when_on_the_owners_clock():
    benched = Activity(failures_in_a_row=3, benched_until=MIDNIGHT + timedelta(minutes=20))
    assert words(activity=benched) == DeviceWords(
        "Benched", "warn", "Failed 3 times in a row: gets work again at 00:20."
    )


def test_a_bench_that_is_over_is_not_mentioned():
    assert words(activity=Activity(failures_in_a_row=1, benched_until=MIDNIGHT)).badge == "Ready"


def test_away_in_its_window_is_something_to_look_at_and_outside_it_is_not():
    seen = Contact(False, None, MIDNIGHT - timedelta(hours=3))
    assert words(contact=seen) == DeviceWords(
        "Not connected", "warn", "Last seen 3 hours ago; idle window: open until 07:00."
    )
    assert words(contact=seen, now=NOON).tone == "quiet"


def test_never_seen_it_says_what_to_do():
    assert "start its agent" in words(contact=Contact(False)).sentence


def test_without_windows_it_never_works_and_says_so():
    assert words(windows=()).sentence == "Outside its idle windows: no idle window."
    assert words(windows=(Window(0, time(1), time(2)),)).badge == "Resting"


@pytest.mark.parametrize(
    ("minutes", "text"),
    [
        (0, "just now"),
        (1, "1 minute ago"),
        (59, "59 minutes ago"),
        (60, "1 hour ago"),
        (60 * 50, "2 days ago"),
    ],
)
def test_times_gone_by_are_in_their_largest_unit(minutes, text):
    assert ago(MIDNIGHT, MIDNIGHT - timedelta(minutes=minutes)) == text
