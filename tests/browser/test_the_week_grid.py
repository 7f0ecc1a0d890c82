"""Idle windows painted on the week grid, by finger and by keyboard, are what the form sends and the server reads."""

import os
import random
from collections.abc import Callable, Collection, Iterator
from datetime import datetime, time, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from django.http import QueryDict
from django.template.loader import render_to_string

from accounts.domain.windows import NIGHTLY, Window
from marketplace.pages.forms import WindowFormSet, window_formset, windows_of
from marketplace.pages.window_rows import minute_of_day, window_presets, window_rows
from tests.chromium import Chromium, ChromiumMissing, browser
from tests.static_site import static_site

pytestmark = pytest.mark.browser

STATIC = Path(__file__).parents[2] / "static"
MONDAY = datetime(2026, 11, 30)  # noqa: DTZ001 - a wall clock
PAGE = """<!doctype html><html lang="en"><meta name="viewport" content="width=device-width">
<link rel="stylesheet" href="/static/site.css"><link rel="stylesheet" href="/static/pages.css">
<link rel="stylesheet" href="/static/devices.css"><script type="module" src="/static/windows.js"></script>
<body><main><section class="card">{form}</section>{room}</main></body></html>"""
NIGHT = [Window(0, time(22), time(7))]


class Grid:
    """The form on a phone's page, with a finger and a keyboard on it."""

    def __init__(self, chromium: Chromium, address: str, folder: Path) -> None:
        self._chromium, self._address, self._folder = chromium, address, folder

    def open(self, windows: Collection[Window]) -> None:
        context = {
            "windows_form": window_formset(windows),
            "presets": window_presets(None),
            "week_now": "1 615",
            "action": "/",
        }
        form = render_to_string("marketplace/windows_form.html", context)
        page = PAGE.format(form=form, room="<p>room to scroll</p>" * 60)
        (self._folder / "page.html").write_text(page)
        self._chromium.navigate(f"{self._address}/files/page.html")
        self.evaluate("new Promise((seen) => requestAnimationFrame(() => seen()))")

    def evaluate(self, expression: str) -> Any:
        return self._chromium.evaluate(expression)

    def windows(self) -> list[Window]:
        """What the server would store, were the form sent now."""
        sent = self.evaluate("new URLSearchParams(new FormData(document.querySelector('form'))).toString()")
        formset = WindowFormSet(QueryDict(sent), prefix="windows")
        assert formset.is_valid(), formset.errors
        return sorted(windows_of(formset))

    def finger(self, *path: tuple[int, float]) -> None:
        """Touch at (weekday, hour), move over the others, and let go."""
        places = [self._place(day, hour) for day, hour in path]
        self._touch("touchStart", places[0])
        for (x, y), (next_x, next_y) in pairwise(places):
            for part in range(1, 11):
                self._touch("touchMove", (x + (next_x - x) * part / 10, y + (next_y - y) * part / 10))
        self._chromium.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])

    def keys(self, *names: str) -> None:
        for name in names:
            shift = name.startswith("Shift+")
            key = {"Space": " "}.get(name.removeprefix("Shift+"), name.removeprefix("Shift+"))
            event: dict[str, Any] = {"key": key, "modifiers": 8 if shift else 0}
            self._chromium.call("Input.dispatchKeyEvent", type="rawKeyDown", **event)
            self._chromium.call("Input.dispatchKeyEvent", type="keyUp", **event)

    def said(self) -> str:
        return str(self.evaluate("document.querySelector('[data-said]').textContent"))

    def _touch(self, kind: str, place: tuple[float, float]) -> None:
        points = [{"x": place[0], "y": place[1]}]
        self._chromium.call("Input.dispatchTouchEvent", type=kind, touchPoints=points)

    def _place(self, day: int, hour: float) -> tuple[float, float]:
        cell = f"document.querySelectorAll('.week-day')[{day}].querySelectorAll('[role=gridcell]')[{int(hour * 2)}]"
        box = self.evaluate(
            f"(({{x, y, width, height}}) => [x + width / 2, y + height / 2])({cell}.getBoundingClientRect())"
        )
        return float(box[0]), float(box[1])


@pytest.fixture(scope="module")
def grid(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Grid]:
    files, profile = (tmp_path_factory.mktemp(name) for name in ("files", "profile"))
    try:
        with (
            static_site({"/static/": STATIC, "/files/": files}) as address,
            browser(profile, flags=["--disable-gpu"]) as chromium,
        ):
            chromium.call(
                "Emulation.setDeviceMetricsOverride", width=390, height=844, deviceScaleFactor=2, mobile=True
            )
            chromium.call("Emulation.setTouchEmulationEnabled", enabled=True)
            yield Grid(chromium, address, files)
    except ChromiumMissing as missing:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(str(missing))


def test_a_finger_paints_sideways_over_several_days_and_does_not_scroll(grid):
    grid.open([])
    grid.finger((0, 20), (0, 23.5), (2, 23.5))
    assert grid.windows() == [Window(day, time(20), time(0)) for day in range(3)]
    assert grid.evaluate("window.scrollY") == 0
    assert grid.said() == "Monday to Wednesday, 20:00 to 24:00: on."


def test_a_finger_that_moves_up_scrolls_and_paints_nothing(grid):
    grid.open(NIGHT)
    grid.finger((6, 12), (0, 12))
    assert grid.windows() == NIGHT
    assert grid.evaluate("new Promise((done) => setTimeout(() => done(window.scrollY), 300))") > 0


def test_a_tap_turns_one_half_hour_and_undo_turns_it_back(grid):
    grid.open(NIGHT)
    grid.finger((1, 3))
    assert grid.windows() == [Window(0, time(22), time(3)), Window(1, time(3, 30), time(7))]
    grid.evaluate("document.querySelector('[data-undo]').click()")
    assert grid.windows() == NIGHT


def test_the_keyboard_moves_chooses_and_turns_on(grid):
    grid.open([])
    grid.evaluate("document.querySelector('[role=gridcell][tabindex=\"0\"]').focus()")
    grid.keys("ArrowDown", "ArrowRight", "Shift+ArrowRight", "Shift+ArrowDown")
    assert grid.said() == "Tuesday to Wednesday, 00:30 to 01:30 chosen; space turns it on."
    grid.keys("Space")
    assert grid.windows() == [Window(day, time(0, 30), time(1, 30)) for day in (1, 2)]
    cell = "document.activeElement"
    assert grid.evaluate(f"{cell}.getAttribute('aria-label')") == "Wednesday 01:00 to 01:30, on"
    assert grid.evaluate(f"{cell}.getAttribute('aria-selected')") == "true"
    grid.keys("Home", "ArrowRight", "Space")
    assert grid.windows() == [Window(1, time(0, 30), time(1, 30)), Window(2, time(1), time(1, 30))]


def test_a_preset_fills_the_form_and_exact_times_outlive_a_stroke_elsewhere(grid):
    grid.open([Window(4, time(21, 17), time(22, 43))])
    grid.finger((0, 1))
    assert Window(4, time(21, 17), time(22, 43)) in grid.windows()
    grid.evaluate("document.querySelector('[data-preset]').click()")
    assert grid.windows() == sorted(NIGHTLY)


def test_rows_that_are_edited_by_hand_are_shown_on_the_grid(grid):
    grid.open(NIGHT)
    grid.evaluate(
        "(() => { const input = document.querySelector('[name=windows-0-starts]'); input.value = '23:00';"
        " input.dispatchEvent(new Event('input', { bubbles: true })); })()"
    )
    assert grid.evaluate("document.querySelectorAll('[role=gridcell].on').length") == 16
    assert grid.evaluate("document.querySelector('[data-sum]').textContent") == "8 hours a week"


def test_any_week_comes_back_as_the_same_minutes_in_as_few_windows(grid):
    grid.open([])
    chance = random.Random(7)
    weeks = [_random_week(chance) for _ in range(100)]
    given = [[_as_row(row.days, row.starts, row.ends) for row in window_rows(week)] for week in weeks]
    back = grid.evaluate(
        "import('/static/week.js').then(({ spansOf, rowsOf }) => "
        f"{given}.map((rows) => rowsOf(spansOf(rows))))"
    )
    for week, rows in zip(weeks, back, strict=True):
        again = [Window(day, _time(row["starts"]), _time(row["ends"])) for row in rows for day in row["days"]]
        assert _minutes(week) == _minutes(again)
        assert len(again) <= max(len(set(week)), 7)


def _random_week(chance: random.Random) -> list[Window]:
    at: Callable[[], time] = lambda: time(chance.randrange(24), chance.choice([0, 30, 17]))  # noqa: E731
    return [Window(chance.randrange(7), at(), at()) for _ in range(chance.randrange(6))]


def _as_row(days: Collection[int], starts: time, ends: time) -> dict[str, Any]:
    return {"days": list(days), "starts": minute_of_day(starts), "ends": minute_of_day(ends)}


def _time(minute: int) -> time:
    return time(*divmod(minute, 60))


def _minutes(windows: Collection[Window]) -> set[int]:
    """When one of them is open, as the server decides it: the minutes on either side of any edge."""
    minutes = (minute for minute in range(7 * 24 * 60) if minute % 30 in (0, 16, 17, 29))
    return {n for n in minutes if any(w.contains(MONDAY + timedelta(minutes=n)) for w in windows)}
