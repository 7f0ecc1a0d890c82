"""Idle windows painted on the week grid, by finger and by keyboard, are what the form sends and the server reads."""

import random
from collections.abc import Callable, Collection, Iterator
from datetime import datetime, time, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from django.http import QueryDict
from django.template.loader import render_to_string
from playwright.sync_api import Browser, Locator, Page, expect

from accounts.domain.windows import NIGHTLY, Window
from marketplace.pages.forms import WindowFormSet, window_formset, windows_of
from marketplace.pages.window_rows import minute_of_day, window_presets, window_rows
from tests.chromium import PHONE
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

    def __init__(self, page: Page, address: str, folder: Path) -> None:
        self.page, self._address, self._folder = page, address, folder
        self._touching = page.context.new_cdp_session(page)  # for strokes: Playwright's finger only taps
        self.sum = page.locator("[data-sum]")
        self.undo = page.locator("[data-undo]")
        self.preset = page.locator("[data-preset]").first
        self.focused = page.locator("[role=gridcell]:focus")

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
        self.page.goto(f"{self._address}/files/page.html")

    def windows(self) -> list[Window]:
        """What the server would store, were the form sent now."""
        form = self.page.locator("form")
        sent = form.evaluate("(form) => new URLSearchParams(new FormData(form)).toString()")
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
        self._touch("touchEnd")

    def keys(self, *names: str) -> None:
        for name in names:
            self.page.keyboard.press(name)

    def said(self) -> str:
        return self.page.locator("[data-said]").text_content() or ""

    def scrolled(self) -> float:
        return float(self.page.evaluate("window.scrollY"))

    def cell(self, day: int, hour: float) -> Locator:
        return self.page.locator(".week-day").nth(day).get_by_role("gridcell").nth(int(hour * 2))

    def _touch(self, kind: str, *places: tuple[float, float]) -> None:
        points = [{"x": x, "y": y} for x, y in places]
        self._touching.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    def _place(self, day: int, hour: float) -> tuple[float, float]:
        box = self.cell(day, hour).bounding_box()
        assert box is not None
        return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


@pytest.fixture(scope="module")
def grid(chromium: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Grid]:
    files = tmp_path_factory.mktemp("files")
    with (
        static_site({"/static/": STATIC, "/files/": files}) as address,
        chromium.new_context(**PHONE) as context,
    ):
        yield Grid(context.new_page(), address, files)


def test_a_finger_paints_sideways_over_several_days_and_does_not_scroll(grid):
    grid.open([])
    grid.finger((0, 20), (0, 23.5), (2, 23.5))
    assert grid.windows() == [Window(day, time(20), time(0)) for day in range(3)]
    assert grid.scrolled() == 0
    assert grid.said() == "Monday to Wednesday, 20:00 to 24:00: on."


def test_a_finger_that_moves_up_scrolls_and_paints_nothing(grid):
    grid.open(NIGHT)
    grid.finger((6, 12), (0, 12))
    assert grid.windows() == NIGHT
    grid.page.wait_for_timeout(300)
    assert grid.scrolled() > 0


def test_a_tap_turns_one_half_hour_and_undo_turns_it_back(grid):
    grid.open(NIGHT)
    grid.finger((1, 3))
    assert grid.windows() == [Window(0, time(22), time(3)), Window(1, time(3, 30), time(7))]
    grid.undo.tap()
    assert grid.windows() == NIGHT


def test_the_keyboard_moves_chooses_and_turns_on(grid):
    grid.open([])
    grid.page.locator("[role=gridcell][tabindex='0']").focus()
    grid.keys("ArrowDown", "ArrowRight", "Shift+ArrowRight", "Shift+ArrowDown")
    assert grid.said() == "Tuesday to Wednesday, 00:30 to 01:30 chosen; space turns it on."
    grid.keys("Space")
    assert grid.windows() == [Window(day, time(0, 30), time(1, 30)) for day in (1, 2)]
    expect(grid.focused).to_have_accessible_name("Wednesday 01:00 to 01:30, on")
    expect(grid.focused).to_have_attribute("aria-selected", "true")
    grid.keys("Home", "ArrowRight", "Space")
    assert grid.windows() == [Window(1, time(0, 30), time(1, 30)), Window(2, time(1), time(1, 30))]


def test_a_preset_fills_the_form_and_exact_times_outlive_a_stroke_elsewhere(grid):
    grid.open([Window(4, time(21, 17), time(22, 43))])
    grid.finger((0, 1))
    assert Window(4, time(21, 17), time(22, 43)) in grid.windows()
    grid.preset.tap()
    assert grid.windows() == sorted(NIGHTLY)


def test_rows_that_are_edited_by_hand_are_shown_on_the_grid(grid):
    grid.open(NIGHT)
    grid.page.get_by_text("Exact times").tap()
    grid.page.locator("[name=windows-0-starts]").fill("23:00")
    expect(grid.page.locator("[role=gridcell].on")).to_have_count(16)
    expect(grid.sum).to_have_text("8 hours a week")


def test_any_week_comes_back_as_the_same_minutes_in_as_few_windows(grid):
    grid.open([])
    chance = random.Random(7)
    weeks = [_random_week(chance) for _ in range(100)]
    given = [[_as_row(row.days, row.starts, row.ends) for row in window_rows(week)] for week in weeks]
    back = grid.page.evaluate(
        "(weeks) => import('/static/week.js').then(({ spansOf, rowsOf }) => "
        "weeks.map((rows) => rowsOf(spansOf(rows))))",
        given,
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
