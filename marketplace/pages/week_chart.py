"""The weekly windows in force as SVG: a row for each day, midnight to midnight on the owner's clock, and now.

Wall-clock times are drawn, so that nothing of it changes when the clocks do.
"""

from collections.abc import Collection, Iterator
from datetime import datetime

from django.utils.safestring import SafeString

from accounts.domain.windows import WEEKDAYS, Window
from marketplace.pages.svg import svg_line, svg_markup, svg_rect, svg_root, svg_text
from marketplace.pages.window_rows import minute_of_day, window_lines

DAY_MIN = 24 * 60
LEFT, TOP, WIDTH = 52.0, 6.0, 360.0
ROW, BAR = 25.0, 17.0
SIZE = (420.0, TOP + 7 * ROW + 28.0)
LABELS_H = (0, 6, 12, 18, 24)


def week_chart(windows: Collection[Window], *, now: datetime) -> SafeString:
    """`now` is on the owner's clock."""
    lines = "; ".join(window_lines(windows)) or "none"
    svg = svg_root("Idle windows in force", f"{lines}. It is {now:%A, %H:%M}.", size=SIZE)
    for weekday, name in enumerate(WEEKDAYS):
        y = TOP + weekday * ROW
        svg_text(svg, "start", (0, y + 15), name[:3])
        svg_rect(svg, "day", (LEFT, y), (WIDTH, BAR))
    for window in sorted(windows):
        for weekday, first_min, last_min in _pieces(window):
            place = (_x(first_min), TOP + weekday * ROW)
            size = (_x(last_min) - _x(first_min), BAR)
            svg_rect(
                svg, "window", place, size, f"{WEEKDAYS[weekday]}, {_clock(first_min)} to {_clock(last_min)}"
            )
    for hour in LABELS_H:
        svg_text(svg, "middle", (_x(hour * 60), SIZE[1] - 8), f"{hour:02d}")
    y = TOP + now.weekday() * ROW
    svg_line(svg, "now", (_x(minute_of_day(now.time())), y - 4), (_x(minute_of_day(now.time())), y + BAR + 4))
    return svg_markup(svg)


def _pieces(window: Window) -> Iterator[tuple[int, int, int]]:
    """(weekday, first minute, last minute) of a window on each of the days that it touches."""
    starts, ends = minute_of_day(window.starts), minute_of_day(window.ends)
    if not window.over_midnight:
        yield window.weekday, starts, ends
        return
    yield window.weekday, starts, DAY_MIN
    if ends:
        yield window.last_weekday, 0, ends


def _clock(minutes: int) -> str:
    return f"{minutes // 60:02d}:{minutes % 60:02d}"


def _x(minutes: int) -> float:
    return LEFT + WIDTH * minutes / DAY_MIN
