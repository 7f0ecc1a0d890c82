"""Idle windows on ordinary nights, on both nights that clocks change, and in zones with odd clocks."""

from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accounts.domain.windows import NIGHTLY, Window, is_open, next_change, window_words

BERLIN = ZoneInfo("Europe/Berlin")
MONDAY, FRIDAY, SATURDAY, SUNDAY = 0, 4, 5, 6
MINUTE = timedelta(minutes=1)

# Each with a clock change nearby: forward and back, by half an hour, at midnight, a whole day skipped, none at all.
ODD_ZONES_AND_DAYS = [
    ("Europe/Berlin", datetime(2026, 3, 28, tzinfo=UTC)),
    ("Europe/Berlin", datetime(2026, 10, 24, tzinfo=UTC)),
    ("America/New_York", datetime(2026, 3, 7, tzinfo=UTC)),
    ("America/New_York", datetime(2026, 10, 31, tzinfo=UTC)),
    ("Australia/Lord_Howe", datetime(2026, 4, 4, tzinfo=UTC)),
    ("Australia/Lord_Howe", datetime(2026, 10, 3, tzinfo=UTC)),
    ("America/Havana", datetime(2025, 11, 1, tzinfo=UTC)),
    ("America/Santiago", datetime(2026, 9, 5, tzinfo=UTC)),
    ("America/Goose_Bay", datetime(2010, 11, 6, tzinfo=UTC)),
    ("Pacific/Apia", datetime(2011, 12, 29, tzinfo=UTC)),
    ("Asia/Kathmandu", datetime(2026, 6, 1, tzinfo=UTC)),
]


def berlin(year: int, month: int, day: int, hour: int, minute: int = 0, *, fold: int = 0) -> datetime:
    return datetime(year, month, day, hour, minute, fold=fold, tzinfo=BERLIN).astimezone(UTC)


def open_time(windows: list[Window], tz: ZoneInfo, start: datetime, *, hours: int) -> timedelta:
    """How long the windows are open from `start` on, by looking at every minute."""
    minutes = (start + n * MINUTE for n in range(hours * 60))
    return sum((MINUTE for at in minutes if is_open(windows, tz, at)), timedelta())


def test_a_window_is_open_from_its_start_until_just_before_its_end():
    window = [Window(MONDAY, time(13), time(14))]
    assert not is_open(window, BERLIN, berlin(2026, 6, 1, 12, 59))
    assert is_open(window, BERLIN, berlin(2026, 6, 1, 13, 0))
    assert is_open(window, BERLIN, berlin(2026, 6, 1, 13, 59))
    assert not is_open(window, BERLIN, berlin(2026, 6, 1, 14, 0))


def test_a_window_over_midnight_is_open_on_the_next_morning():
    window = [Window(SUNDAY, time(22), time(7))]
    assert is_open(window, BERLIN, berlin(2026, 6, 7, 23))
    assert is_open(window, BERLIN, berlin(2026, 6, 8, 6, 59))
    assert not is_open(window, BERLIN, berlin(2026, 6, 8, 7))
    assert not is_open(window, BERLIN, berlin(2026, 6, 7, 6, 59)), "the morning before it began"


def test_a_window_that_ends_when_it_starts_lasts_a_whole_day():
    window = [Window(FRIDAY, time(9), time(9))]
    assert open_time(window, BERLIN, berlin(2026, 6, 1, 0), hours=7 * 24) == timedelta(hours=24)


def test_several_windows_a_day_are_each_open():
    windows = [Window(MONDAY, time(1), time(2)), Window(MONDAY, time(13), time(14, 30))]
    assert open_time(windows, BERLIN, berlin(2026, 6, 1, 0), hours=24) == timedelta(hours=2, minutes=30)


def test_no_windows_are_never_open():
    assert not is_open([], BERLIN, berlin(2026, 6, 1, 3))
    assert next_change([], BERLIN, berlin(2026, 6, 1, 3)) is None


def test_a_window_across_the_lost_hour_is_an_hour_shorter():
    window = [Window(SUNDAY, time(1), time(5))]
    assert open_time(window, BERLIN, berlin(2026, 3, 29, 0), hours=23) == timedelta(hours=3)


def test_a_window_across_the_repeated_hour_is_an_hour_longer():
    window = [Window(SUNDAY, time(1), time(5))]
    assert open_time(window, BERLIN, berlin(2026, 10, 25, 0), hours=25) == timedelta(hours=5)


@pytest.mark.parametrize(("month", "day", "hours"), [(3, 28, 8), (10, 24, 10), (6, 6, 9)])
def test_an_overnight_window_keeps_its_wall_clock_ends_whatever_the_night(month, day, hours):
    opens = next_change(NIGHTLY, BERLIN, berlin(2026, month, day, 12))
    assert opens is not None
    closes = next_change(NIGHTLY, BERLIN, opens)
    assert closes is not None
    assert (f"{opens.astimezone(BERLIN):%H:%M}", f"{closes.astimezone(BERLIN):%H:%M}") == ("22:00", "07:00")
    assert closes - opens == timedelta(hours=hours)


def test_a_start_within_the_lost_hour_opens_where_the_clock_jumps():
    window = [Window(SUNDAY, time(2, 30), time(4))]
    assert next_change(window, BERLIN, berlin(2026, 3, 29, 0)) == berlin(2026, 3, 29, 3)


def test_an_end_within_the_lost_hour_closes_where_the_clock_jumps():
    window = [Window(SUNDAY, time(1), time(2, 30))]
    assert next_change(window, BERLIN, berlin(2026, 3, 29, 1, 30)) == berlin(2026, 3, 29, 3)


def test_a_window_within_the_lost_hour_waits_for_the_next_week():
    window = [Window(SUNDAY, time(2, 10), time(2, 50))]
    assert next_change(window, BERLIN, berlin(2026, 3, 29, 0)) == berlin(2026, 4, 5, 2, 10)


def test_a_window_within_the_repeated_hour_is_open_both_times():
    window = [Window(SUNDAY, time(2, 10), time(2, 50))]
    first, second = berlin(2026, 10, 25, 2, 30), berlin(2026, 10, 25, 2, 30, fold=1)
    assert second - first == timedelta(hours=1)
    assert is_open(window, BERLIN, first)
    assert is_open(window, BERLIN, second)
    assert not is_open(window, BERLIN, first + timedelta(minutes=30))
    closed = next_change(window, BERLIN, first)
    assert closed == berlin(2026, 10, 25, 2, 50)
    assert next_change(window, BERLIN, closed) == berlin(2026, 10, 25, 2, 10, fold=1)


def test_a_clock_that_goes_back_over_midnight_repeats_the_day_before():
    """Goose Bay went back from Sunday 00:01 to Saturday 23:01, so Saturday's last hour came twice."""
    goose_bay = ZoneInfo("America/Goose_Bay")
    window = [Window(SATURDAY, time(23, 30), time(23, 45))]
    just_after_midnight = datetime(2010, 11, 7, 0, 0, 30, tzinfo=goose_bay).astimezone(UTC)
    again = datetime(2010, 11, 6, 23, 30, fold=1, tzinfo=goose_bay).astimezone(UTC)
    assert next_change(window, goose_bay, just_after_midnight) == again


def test_a_window_on_a_day_that_a_country_skipped_does_not_happen():
    apia = ZoneInfo("Pacific/Apia")  # went from Thursday, 29 December 2011, straight to Saturday
    friday = [Window(FRIDAY, time(9), time(17))]
    thursday_noon = datetime(2011, 12, 29, 12, tzinfo=apia)
    opens = next_change(friday, apia, thursday_noon.astimezone(UTC))
    assert opens == datetime(2012, 1, 6, 9, tzinfo=apia).astimezone(UTC)


def test_a_device_clock_without_daylight_saving_plays_no_part():
    """The owner's zone decides: 22:00 in Berlin is 20:00 UTC in summer and 21:00 UTC in winter."""
    assert next_change(NIGHTLY, BERLIN, berlin(2026, 7, 1, 12)) == datetime(2026, 7, 1, 20, tzinfo=UTC)
    assert next_change(NIGHTLY, BERLIN, berlin(2026, 12, 1, 12)) == datetime(2026, 12, 1, 21, tzinfo=UTC)


def test_windows_that_touch_are_one_opening():
    windows = [Window(MONDAY, time(10), time(12)), Window(MONDAY, time(12), time(14))]
    assert next_change(windows, BERLIN, berlin(2026, 6, 1, 11)) == berlin(2026, 6, 1, 14)


@pytest.mark.parametrize(
    ("windows", "now", "words"),
    [
        (NIGHTLY, (2026, 6, 1, 12), "opens at 22:00"),
        (NIGHTLY, (2026, 6, 1, 23), "open until 07:00"),
        ([Window(FRIDAY, time(22), time(7))], (2026, 6, 1, 12), "opens on Friday at 22:00"),
        ([Window(MONDAY, time(9), time(10))], (2026, 6, 1, 12), "opens on Monday 08 June at 09:00"),
        ([Window(d, time(0), time(0)) for d in (0, 1)], (2026, 6, 1, 0, 30), "open until Wednesday at 00:00"),
        ([Window(d, time(0), time(0)) for d in range(7)], (2026, 6, 1, 12), "open at all times"),
        ([], (2026, 6, 1, 12), "no idle window"),
    ],
)
def test_words_say_when_a_window_changes(windows, now, words):
    assert window_words(windows, BERLIN, berlin(*now)) == words


# ---- against a slow model that shares nothing with the code -----------------------------------------------------

# Half of them in the small hours, where clocks change.
minutes_of_day = (st.integers(0, 24 * 60 - 1) | st.integers(0, 4 * 60)).map(lambda m: time(m // 60, m % 60))
some_windows = st.lists(st.builds(Window, st.integers(0, 6), minutes_of_day, minutes_of_day), max_size=5)


def minutes_of_the_week(windows: list[Window]) -> set[int]:
    """Every minute of a wall-clock week (0 is Monday 00:00) that a window covers, by walking through each window."""
    covered = set()
    for window in windows:
        minute = window.weekday * 1440 + window.starts.hour * 60 + window.starts.minute
        end_of_day = window.ends.hour * 60 + window.ends.minute
        while True:
            covered.add(minute % (7 * 1440))
            minute += 1
            if minute % 1440 == end_of_day:
                break
    return covered


def slowly_open(covered: set[int], tz: ZoneInfo, instant: datetime) -> bool:
    wall = instant.astimezone(tz)
    return wall.weekday() * 1440 + wall.hour * 60 + wall.minute in covered


@settings(max_examples=60, deadline=None)
@given(some_windows, st.sampled_from(ODD_ZONES_AND_DAYS), st.integers(0, 3 * 1440))
def test_windows_agree_with_a_minute_by_minute_walk(windows, zone_and_day, offset_minutes):
    zone, day = zone_and_day
    tz, start = ZoneInfo(zone), day + offset_minutes * MINUTE
    covered = minutes_of_the_week(windows)
    assert is_open(windows, tz, start) == slowly_open(covered, tz, start)

    change = next_change(windows, tz, start)
    walked = start + MINUTE
    horizon = start + timedelta(days=15)
    while walked < horizon and slowly_open(covered, tz, walked) == slowly_open(covered, tz, start):
        walked += MINUTE
    assert change == (walked if walked < horizon else None)


@settings(max_examples=200, deadline=None)
@given(some_windows, st.sampled_from(ODD_ZONES_AND_DAYS), st.integers(0, 10 * 86_400))
def test_nothing_changes_before_the_next_change(windows, zone_and_day, offset_seconds):
    zone, day = zone_and_day
    tz, now = ZoneInfo(zone), day + timedelta(seconds=offset_seconds)
    change = next_change(windows, tz, now)
    if change is not None:
        assert change > now
        assert is_open(windows, tz, change) != is_open(windows, tz, now)
        assert is_open(windows, tz, change - timedelta(microseconds=1)) == is_open(windows, tz, now)
