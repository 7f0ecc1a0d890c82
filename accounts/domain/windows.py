"""Idle windows: weekly wall-clock times in which a device may be given work.

A window is about what the owner's clock on the wall shows. `is_open` therefore looks at nothing but the local wall
clock, which settles every odd night: on the day that clocks go forward a 01:00-05:00 window is 3 hours long, on the
day they go back it is 5; an end inside a skipped hour falls where the clock jumps; times that the clock shows twice
are inside (or outside) both times; a window within a skipped hour, or on a skipped day, does not happen.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
# Any weekly window opens and closes within this time, even if a clock change swallows it once.
HORIZON = timedelta(days=15)
# Between two looks at a zone's UTC offset; no zone has changed its clock twice within so little.
OFFSET_STEP = timedelta(hours=6)
NOON = time(12)


@dataclass(frozen=True, slots=True, order=True)
class Window:
    """Begins on `weekday` (Monday is 0) at `starts`; an `ends` at or before `starts` is on the next day."""

    weekday: int
    starts: time
    ends: time

    @property
    def over_midnight(self) -> bool:
        return self.ends <= self.starts

    @property
    def last_weekday(self) -> int:
        return (self.weekday + self.over_midnight) % 7

    def contains(self, wall: datetime) -> bool:
        """Whether the window is open when the clock on the wall shows `wall`; the end is not part of it."""
        now = wall.time()
        if not self.over_midnight:
            return wall.weekday() == self.weekday and self.starts <= now < self.ends
        evening = wall.weekday() == self.weekday and now >= self.starts
        morning = wall.weekday() == self.last_weekday and now < self.ends
        return evening or morning


# What an owner who has said nothing yet gets: every night.
NIGHTLY = tuple(Window(weekday, time(22), time(7)) for weekday in range(7))


def is_open(windows: Collection[Window], tz: ZoneInfo, now_utc: datetime) -> bool:
    """Whether any of the windows is open at this instant. No windows: never."""
    wall = now_utc.astimezone(tz).replace(tzinfo=None)
    return any(window.contains(wall) for window in windows)


def next_change(windows: Collection[Window], tz: ZoneInfo, now_utc: datetime) -> datetime | None:
    """The first instant after `now_utc` at which `is_open` changes; None if it never does.

    It can only change where the wall clock reaches a start or an end, or jumps; so those instants are tried in order.
    """
    now_utc = now_utc.astimezone(UTC)
    before = is_open(windows, tz, now_utc)
    instants = {*_edges(windows, tz, now_utc), *_clock_changes(tz, now_utc)}
    for instant in sorted(instants):
        if instant > now_utc and is_open(windows, tz, instant) != before:
            return instant
    return None


def next_times(
    windows: Collection[Window], tz: ZoneInfo, now_utc: datetime
) -> tuple[datetime | None, datetime | None]:
    """(when a window opens, None while one is open; when the one that is open closes, None while none is).

    Both are None where time alone changes nothing: never open, or open at all times.
    """
    change = next_change(windows, tz, now_utc)
    return (None, change) if is_open(windows, tz, now_utc) else (change, None)


def last_noon(tz: ZoneInfo, now_utc: datetime) -> datetime:
    """The latest noon of the wall clock that is not after now: a night, as an owner counts it, is noon to noon."""
    return _noon(tz, now_utc, days_back=0 if now_utc.astimezone(tz).time() >= NOON else 1)


def next_noon(tz: ZoneInfo, now_utc: datetime) -> datetime:
    """The first noon of the wall clock after now."""
    return _noon(tz, now_utc, days_back=-1 if now_utc.astimezone(tz).time() >= NOON else 0)


def window_words(windows: Collection[Window], tz: ZoneInfo, now_utc: datetime) -> str:
    """For people: 'open until 07:00', 'opens at 22:00', 'opens on Friday at 22:00', in the owner's time."""
    if not windows:
        return "no idle window"
    change = next_change(windows, tz, now_utc)
    opened = is_open(windows, tz, now_utc)
    if change is None:
        return "open at all times" if opened else "never open"
    wall_now, wall_change = now_utc.astimezone(tz), change.astimezone(tz)
    verb, preposition = ("open", "until") if opened else ("opens", "at")
    if change - now_utc < timedelta(hours=24):
        return f"{verb} {preposition} {wall_change:%H:%M}"
    day = WEEKDAYS[wall_change.weekday()]
    if wall_change.date() - wall_now.date() >= timedelta(days=7):
        day = f"{day} {wall_change:%d %B}"
    return f"open until {day} at {wall_change:%H:%M}" if opened else f"opens on {day} at {wall_change:%H:%M}"


def _noon(tz: ZoneInfo, now_utc: datetime, *, days_back: int) -> datetime:
    day = now_utc.astimezone(tz).date() - timedelta(days=days_back)
    return datetime.combine(day, NOON, tzinfo=tz).astimezone(UTC)


def _edges(windows: Collection[Window], tz: ZoneInfo, now_utc: datetime) -> Iterator[datetime]:
    """Every instant within the horizon at which the wall clock shows a start or an end.

    For a time that the clock skips these are instants of no meaning, which do no harm: see `next_change`.
    """
    edges = {(w.weekday, w.starts) for w in windows} | {(w.last_weekday, w.ends) for w in windows}
    first = now_utc.astimezone(tz).date() - timedelta(days=1)
    for day in _days(first, count=HORIZON.days + 2):
        for weekday, at in edges:
            if weekday == day.weekday():
                for fold in (0, 1):  # the first and the second time that the clock shows it
                    yield datetime.combine(day, at, tzinfo=tz).replace(fold=fold).astimezone(UTC)


def _days(first: date, *, count: int) -> Iterator[date]:
    return (first + timedelta(days=n) for n in range(count))


def _clock_changes(tz: ZoneInfo, now_utc: datetime) -> Iterator[datetime]:
    """The instants within the horizon at which the zone's offset from UTC changes, found by bisection."""
    end = now_utc + HORIZON
    left = now_utc
    while left < end:
        right = left + OFFSET_STEP
        if _offset(tz, left) != _offset(tz, right):
            yield _clock_change_between(tz, left, right)
        left = right


def _clock_change_between(tz: ZoneInfo, left: datetime, right: datetime) -> datetime:
    old = _offset(tz, left)
    low, high = int(left.timestamp()), int(right.timestamp()) + 1
    while high - low > 1:  # old offset at low, new offset at high, in whole seconds
        middle = (low + high) // 2
        if _offset(tz, datetime.fromtimestamp(middle, UTC)) == old:
            low = middle
        else:
            high = middle
    return datetime.fromtimestamp(high, UTC)


def _offset(tz: ZoneInfo, instant: datetime) -> timedelta | None:
    return instant.astimezone(tz).utcoffset()
