"""How long a device may work in a usual week, for estimates: wall-clock time, without looking at any date."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import time

from accounts.domain.windows import Window

DAY_MINUTES = 24 * 60
WEEK_MINUTES = 7 * DAY_MINUTES


@dataclass(frozen=True, slots=True)
class UsualWeek:
    open_minutes: int
    nights: int  # days of the week on which a window opens

    @property
    def hours_a_night(self) -> float:
        return self.open_minutes / 60 / self.nights if self.nights else 0.0


def usual_week(windows: Collection[Window]) -> UsualWeek:
    """The minutes of a week in which any of the windows is open; where windows overlap they count once."""
    open_minutes = {minute % WEEK_MINUTES for window in windows for minute in _minutes(window)}
    return UsualWeek(open_minutes=len(open_minutes), nights=len({window.weekday for window in windows}))


def _minutes(window: Window) -> range:
    starts = window.weekday * DAY_MINUTES + _minute(window.starts)
    ends = (window.weekday + window.over_midnight) * DAY_MINUTES + _minute(window.ends)
    return range(starts, ends)


def _minute(at: time) -> int:
    return at.hour * 60 + at.minute
