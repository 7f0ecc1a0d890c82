"""Line charts of a job's rounds as SVG, drawn on the server: no script, no inline style, no text left unescaped.

`line_chart` is pure: values in, SVG text out. Colours and fonts come from the site's style sheet by class, so that a
chart is readable in light and dark. The two lines differ by dash as well as by colour (the page has the key to them),
and every value can be had as a tooltip and in the page's table.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from xml.etree import ElementTree

from marketplace.pages.svg import Point, svg_line, svg_root, svg_text, svg_words

WIDTH, HEIGHT = 420, 240
LEFT, RIGHT, TOP, BOTTOM = 50, 10, 10, 38  # room for tick labels and the axis title
TICKS = 5
MAX_POINTS = 300  # more than there are pixels for
MAX_DOTS = 40  # more only hide the line


@dataclass(frozen=True, slots=True)
class Series:
    """One line: its name, and a value for each round from the first on; None where there is none."""

    name: str
    values: Sequence[float | None]


def line_chart(
    *,
    title: str,
    description: str,
    series: Sequence[Series],
    rounds: int,
    value_text: Callable[[float], str] = "{:.3g}".format,
    ceiling: float | None = None,
) -> str:
    """SVG of one or two series by round, the x axis running to `rounds`; empty text if there is nothing to draw.

    `value_text` writes a value of the y axis. The axis never goes beyond `ceiling`, where values have one.
    """
    drawn = [(one.name, _points(one.values)) for one in series]
    values = [value for _, points in drawn for _, value in points]
    if not values:
        return ""
    y_ticks = nice_ticks(min(values), max(values), ceiling=ceiling)
    last_round = max(rounds, 2, *(len(one.values) for one in series))
    frame = _Frame(first_x=1, last_x=last_round, low_y=y_ticks[0], high_y=y_ticks[-1])
    svg = svg_root(title, description, size=(WIDTH, HEIGHT))
    _draw_axes(svg, frame, y_ticks, value_text)
    for place, (name, points) in zip(("", " second"), drawn, strict=False):
        _draw_line(svg, frame, place, name, points, value_text)
    return svg_words(svg)


def nice_ticks(low: float, high: float, *, ceiling: float | None = None) -> list[float]:
    """About TICKS round numbers (steps of 1, 2 or 5 times a power of ten) that enclose `low` to `high`."""
    if high - low < 1e-9 * max(1.0, abs(high)):
        margin = abs(high) / 10 or 1.0
        low, high = low - margin, high + margin
    step = _nice_step((high - low) / (TICKS - 1))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    if ceiling is not None:
        last = min(last, max(first + 1, round(ceiling / step)))
    return [float(f"{index * step:.12g}") for index in range(first, last + 1)]


def round_ticks(last: int) -> list[int]:
    """The first round, and a few round numbers up to `last`."""
    step = max(1, math.ceil(_nice_step((last - 1) / TICKS)))
    return [1, *(n for n in range(step, last + 1, step) if n > 1)]


def thinned(points: Sequence[Point]) -> list[Point]:
    """At most MAX_POINTS of the points, evenly chosen, the last one among them."""
    if len(points) <= MAX_POINTS:
        return list(points)
    spread = (len(points) - 1) / (MAX_POINTS - 1)
    return [points[round(index * spread)] for index in range(MAX_POINTS)]


def _points(values: Sequence[float | None]) -> list[Point]:
    """(round, value), rounds counted from 1; values that are missing or not finite are left out."""
    numbered = enumerate(values, start=1)
    return thinned([(n, value) for n, value in numbered if value is not None and math.isfinite(value)])


def _nice_step(rough: float) -> float:
    power = 10.0 ** math.floor(math.log10(rough))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * (1 - 1e-9))


@dataclass(frozen=True, slots=True)
class _Frame:
    """Maps rounds and values to places in the drawing."""

    first_x: float
    last_x: float
    low_y: float
    high_y: float

    def x(self, value: float) -> float:
        share = (value - self.first_x) / (self.last_x - self.first_x)
        return round(LEFT + share * (WIDTH - LEFT - RIGHT), 1)

    def y(self, value: float) -> float:
        share = (value - self.low_y) / (self.high_y - self.low_y)
        return round(HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM), 1)


def _draw_axes(
    svg: ElementTree.Element, frame: _Frame, y_ticks: Sequence[float], value_text: Callable[[float], str]
) -> None:
    for value in y_ticks:
        y = frame.y(value)
        svg_line(svg, "grid", (LEFT, y), (WIDTH - RIGHT, y))
        svg_text(svg, "end", (LEFT - 6, y + 4), value_text(value))
    floor = HEIGHT - BOTTOM
    for number in round_ticks(int(frame.last_x)):
        x = frame.x(number)
        svg_line(svg, "axis", (x, floor), (x, floor + 4))
        svg_text(svg, "middle", (x, floor + 17), str(number))
    svg_line(svg, "axis", (LEFT, floor), (WIDTH - RIGHT, floor))
    svg_text(svg, "middle", ((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 5), "round")


def _draw_line(
    svg: ElementTree.Element,
    frame: _Frame,
    place: str,
    name: str,
    points: Sequence[Point],
    value_text: Callable[[float], str],
) -> None:
    path = " ".join(f"{frame.x(x)},{frame.y(y)}" for x, y in points)
    ElementTree.SubElement(svg, "polyline", {"class": f"line{place}", "points": path})
    for x, y in points if len(points) <= MAX_DOTS else points[-1:]:
        at = {"cx": str(frame.x(x)), "cy": str(frame.y(y)), "r": "3"}
        dot = ElementTree.SubElement(svg, "circle", {"class": f"dot{place}", **at})
        ElementTree.SubElement(dot, "title").text = f"Round {x:.0f}, {name}: {value_text(y)}"
