"""The owner's policy against sensor readings: what blocks, what never does, and no flicker."""

from datetime import UTC, datetime, time
from itertools import pairwise
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accounts.domain.policy import Readings, block_words, decide, resume_battery_percent, resume_celsius
from accounts.domain.profile import DeviceProfile, DeviceState, Policy
from accounts.domain.windows import NIGHTLY, Window

NIGHT = datetime(2026, 6, 1, 23, tzinfo=UTC)
NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
ALWAYS = tuple(Window(weekday, time(0), time(0)) for weekday in range(7))
WELL = Readings(battery_percent=90, charging=True, network="wifi", temperature_celsius=30, thermal="nominal")


def profile(
    *, state: DeviceState = "active", windows: tuple[Window, ...] = NIGHTLY, **policy: Any
) -> DeviceProfile:
    return DeviceProfile(
        id=UUID(int=1),
        owner_id=1,
        state=state,
        device_class="phone-high",
        speed_factor=1.0,
        policy=Policy(**policy),
        windows=windows,
        time_zone=ZoneInfo("UTC"),
    )


def blocked(
    readings: Readings = WELL, *, before: str | None = None, now: datetime = NIGHT, **facts: Any
) -> str | None:
    return decide(profile=profile(**facts), readings=readings, now=now, blocked_before=before)


def states_over(many_readings: list[Readings], **facts: Any) -> list[str | None]:
    """The answers to readings in a row, each told what the one before was; the first is 'may work'."""
    states: list[str | None] = [None]
    for readings in many_readings:
        states.append(blocked(readings, before=states[-1], **facts))
    return states


def changes(states: list[str | None]) -> int:
    return sum(a != b for a, b in pairwise(states))


def test_a_device_that_is_well_may_work():
    assert blocked() is None


@pytest.mark.parametrize(
    ("readings", "reason"),
    [
        (Readings(battery_percent=39), "battery_low"),
        (Readings(charging=False), "not_charging"),
        (Readings(network="cellular"), "not_on_wifi"),
        (Readings(temperature_celsius=40), "too_hot"),
        (Readings(thermal="serious"), "too_hot"),
        (Readings(thermal="critical"), "too_hot"),
    ],
)
def test_each_reading_blocks_on_its_own(readings, reason):
    assert blocked(readings) == reason


@pytest.mark.parametrize(
    "readings",
    [
        Readings(battery_percent=40),
        Readings(charging=True),
        Readings(network="wifi"),
        Readings(network="ethernet"),
        Readings(network="none"),  # which spends nobody's data
        Readings(temperature_celsius=39.9),
    ],
)
def test_a_reading_at_its_permitted_bound_does_not_block(readings):
    assert blocked(readings) is None


def test_rules_that_the_owner_has_not_set_do_not_block():
    readings = Readings(battery_percent=0, charging=False, network="cellular")
    assert blocked(readings, battery_floor_percent=0, charging_only=False, wifi_only=False) is None


def test_a_device_without_any_sensor_still_gets_work():
    assert blocked(Readings()) is None


def test_a_missing_temperature_sensor_blocks_nothing():
    assert blocked(Readings(battery_percent=80, charging=True, network="wifi")) is None
    assert blocked(Readings(battery_percent=80), before="too_hot") is None


def test_a_battery_of_zero_on_the_charger_is_unknown():
    assert blocked(Readings(battery_percent=0.0, charging=True)) is None


def test_a_battery_of_zero_off_the_charger_is_empty():
    assert blocked(Readings(battery_percent=0.0, charging=False), charging_only=False) == "battery_low"


def test_unplugging_stops_work_at_once_when_charging_only():
    plugged, unplugged = (
        Readings(battery_percent=90, charging=True),
        Readings(battery_percent=90, charging=False),
    )
    assert states_over([plugged, unplugged, plugged]) == [None, None, "not_charging", None]


def test_what_our_own_work_does_to_a_phone_does_not_stop_it():
    """Work warms a phone, raises its thermal level to 'fair' and makes it busy; none of that is a reason."""
    at_work = Readings(battery_percent=80, charging=True, temperature_celsius=39.5, thermal="fair")
    assert states_over([at_work] * 5) == [None] * 6


def test_the_pause_and_the_window_come_before_the_sensors():
    hot = Readings(temperature_celsius=60)
    assert blocked(hot, state="removed") == "removed"
    assert blocked(hot, state="paused", now=NOON) == "paused"
    assert blocked(hot, now=NOON) == "outside_window"
    assert blocked(windows=()) == "outside_window"


def test_what_has_stopped_a_device_stays_the_reason_until_it_is_over():
    """Else a second trouble would make it forget how far the first one has to recover."""
    recovering = Readings(battery_percent=42)
    hot_too = Readings(battery_percent=42, temperature_celsius=50)
    low = Readings(battery_percent=39)
    assert states_over([low, recovering, hot_too, recovering]) == [None, *["battery_low"] * 4]


def test_heat_by_the_systems_own_word_resumes_only_when_nominal():
    levels = [Readings(thermal=t) for t in ("serious", "fair", "serious", "fair", "nominal", "fair")]
    assert states_over(levels) == [None, *["too_hot"] * 4, None, None]


@given(st.integers(0, 95), st.lists(st.integers(-2, 2), max_size=40))
def test_a_battery_flickering_at_its_floor_changes_the_state_once_at_most(floor, flicker):
    readings = [Readings(battery_percent=min(100, max(0, floor + d)), charging=False) for d in flicker]
    assert changes(states_over(readings, battery_floor_percent=floor, charging_only=False)) <= 1


@given(st.integers(30, 60), st.lists(st.floats(-2, 2), max_size=40))
def test_a_temperature_flickering_at_its_limit_changes_the_state_once_at_most(limit, flicker):
    readings = [Readings(temperature_celsius=limit + d) for d in flicker]
    assert changes(states_over(readings, too_hot_celsius=limit)) <= 1


@given(st.integers(0, 95), st.lists(st.integers(-2, 2), max_size=40))
def test_a_battery_flickering_where_it_resumes_changes_the_state_once_at_most(floor, flicker):
    resume = resume_battery_percent(Policy(battery_floor_percent=floor))
    readings = [Readings(battery_percent=min(100, resume + d)) for d in flicker]
    states: list[str | None] = ["battery_low"]
    for r in readings:
        states.append(blocked(r, before=states[-1], battery_floor_percent=floor))
    assert changes(states) <= 1


@given(st.integers(0, 95))
def test_the_charge_shown_for_resuming_is_the_one_in_force(floor):
    shown = resume_battery_percent(Policy(battery_floor_percent=floor))
    resumes_at = next(
        percent
        for percent in range(1, 101)
        if blocked(Readings(battery_percent=percent), before="battery_low", battery_floor_percent=floor)
        is None
    )
    assert shown == resumes_at


@given(st.integers(30, 60))
def test_the_temperature_shown_for_resuming_is_the_one_in_force(limit):
    policy = Policy(too_hot_celsius=limit)
    shown = resume_celsius(policy)
    assert blocked(Readings(temperature_celsius=shown), before="too_hot", too_hot_celsius=limit) is None
    assert (
        blocked(Readings(temperature_celsius=shown + 0.1), before="too_hot", too_hot_celsius=limit)
        == "too_hot"
    )


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("battery_low", "battery below 35 %: resumes at 40 %"),
        ("too_hot", "too hot: resumes at 37 °C"),
        ("outside_window", "outside its idle windows: opens at 22:00"),
        ("self_test_failed", "self test failed"),
    ],
)
def test_words_for_people_carry_the_numbers_in_force(reason, words):
    device = profile(battery_floor_percent=35, too_hot_celsius=42)
    assert block_words(reason, profile=device, now=NOON) == words
