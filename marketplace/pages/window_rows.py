"""Weekly windows as people think of them: the same times on several days as one row. Pure."""

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import time

from accounts.domain.windows import NIGHTLY, WEEKDAYS, Window


@dataclass(frozen=True, slots=True)
class WindowRow:
    days: tuple[int, ...]
    starts: time
    ends: time

    def __str__(self) -> str:
        """'Monday to Friday, 22:00 to 07:00'."""
        if self.starts == self.ends == time(0):
            return f"{days_words(self.days)}, all day"
        if self.starts == self.ends:
            return f"{days_words(self.days)}, 24 hours from {self.starts:%H:%M}"
        return f"{days_words(self.days)}, {self.starts:%H:%M} to {self.ends:%H:%M}"


def window_rows(windows: Iterable[Window]) -> tuple[WindowRow, ...]:
    """In the order of their first days."""
    days: defaultdict[tuple[time, time], list[int]] = defaultdict(list)
    for window in sorted(windows):
        days[window.starts, window.ends].append(window.weekday)
    return tuple(WindowRow(tuple(on), starts, ends) for (starts, ends), on in days.items())


def window_lines(windows: Iterable[Window]) -> tuple[str, ...]:
    return tuple(str(row) for row in window_rows(windows))


@dataclass(frozen=True, slots=True)
class Preset:
    """A week that is put into the form at one press; `rows` is JSON, as week.js reads it."""

    label: str
    rows: str


def window_presets(common: Sequence[Window] | None) -> tuple[Preset, ...]:
    """`common` are the windows of all devices, for the page of one; None on the page of all."""
    presets = [
        Preset("Every night", _json(NIGHTLY)),
        Preset("Weekends", _json([Window(day, time(0), time(0)) for day in (5, 6)])),
        Preset("Always", _json([Window(day, time(0), time(0)) for day in range(len(WEEKDAYS))])),
        Preset("Clear", _json([])),
    ]
    if common:
        presets.insert(0, Preset("As all devices", _json(common)))
    return tuple(presets)


def _json(windows: Sequence[Window]) -> str:
    return json.dumps(
        [
            {"days": row.days, "starts": minute_of_day(row.starts), "ends": minute_of_day(row.ends)}
            for row in window_rows(windows)
        ]
    )


def minute_of_day(at: time) -> int:
    return at.hour * 60 + at.minute


def days_words(days: Sequence[int]) -> str:
    """'every day', 'Monday to Friday', 'Saturday and Sunday', 'Monday, Wednesday and Friday'."""
    if len(days) == len(WEEKDAYS):
        return "Every day"
    names = [WEEKDAYS[day] for day in days]
    if len(days) > 2 and days[-1] - days[0] == len(days) - 1:
        return f"{names[0]} to {names[-1]}"
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
