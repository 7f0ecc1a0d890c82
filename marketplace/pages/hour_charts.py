"""A device's last hours as SVG, drawn on the server: what it earned in each hour, and what the hour went to.

Each use of an hour differs by width and outline as well as by colour, so that nobody needs to tell colours apart; all
values stand in the page's table and as tooltips. Times are on the owner's clock.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from django.utils.safestring import SafeString

from common.money import format_usd
from marketplace.nights.reasons import hours_words
from marketplace.nights.record import FREE, HOUR, OFFLINE, OUTSIDE, WORKING, Hour, Record
from marketplace.pages.svg import Svg, svg_line, svg_markup, svg_rect, svg_root, svg_text

WIDTH = 420.0
EARNED_TOP, EARNED_BOTTOM = 28.0, 84.0
TIME_TOP, TIME_BOTTOM = 118.0, 176.0
HEIGHT = 222.0
STRIP_HEIGHT = 22.0
LABEL_EVERY_H = 4
MINUTE = timedelta(minutes=1)

USES = {
    WORKING: "worked",
    FREE: "ready, no job",
    OUTSIDE: "outside its window",
    OFFLINE: "not connected",
    "battery_low": "battery too low",
    "not_charging": "not on its charger",
    "not_on_wifi": "not on Wi-Fi",
    "too_hot": "too hot",
    "paused": "paused",
    "removed": "removed",
    "self_test_failed": "failed its self-test",
}


@dataclass(frozen=True, slots=True)
class Look:
    """How a use of time is drawn: its class in the style sheet, and which part of an hour's width it fills."""

    css: str
    width: float


_LOOKS = {WORKING: Look("work", 0.9), FREE: Look("ready", 0.9), OUTSIDE: Look("outside", 0.3)}
_KEPT = Look("kept", 0.6)
# From the bottom of a bar to its top; whatever else kept the device from work comes after readiness.
_ORDER = (WORKING, FREE)


def use_words(what: str) -> str:
    return USES.get(what, what.replace("_", " "))


def spent_words(hour: Hour) -> str:
    """'worked 40 min, not connected 20 min', the longest first."""
    longest = sorted(hour.spent.items(), key=lambda item: -item[1])
    return ", ".join(f"{use_words(what)} {hours_words(time)}" for what, time in longest if time >= MINUTE)


def hour_chart(record: Record, *, zone: ZoneInfo, title: str) -> SafeString:
    """Earnings above, time below; the hours in which the idle windows were open stand on a light ground."""
    frame = _Frame(record)
    svg = svg_root(title, _description(record), size=(WIDTH, HEIGHT))
    for start, end in record.opened:
        size = (frame.x(end) - frame.x(start), TIME_BOTTOM - EARNED_TOP)
        svg_rect(svg, "open", (frame.x(start), EARNED_TOP), size)
    _draw_earnings(svg, frame, record, zone)
    svg_text(svg, "start", (0, TIME_TOP - 8), "what each hour went to")
    for hour in record.hours:
        _draw_time(svg, frame, hour, TIME_TOP, TIME_BOTTOM, _tooltip(zone))
    svg_line(svg, "axis", (0, TIME_BOTTOM), (WIDTH, TIME_BOTTOM))
    _draw_clock(svg, frame, record, zone)
    return svg_markup(svg)


def hour_strip(record: Record, *, zone: ZoneInfo, title: str) -> SafeString:
    """The lower part alone, for a list of devices."""
    frame = _Frame(record)
    svg = svg_root(title, _description(record), size=(WIDTH, STRIP_HEIGHT))
    svg.set("preserveAspectRatio", "none")  # as wide as there is room, and no higher
    for start, end in record.opened:
        svg_rect(svg, "open", (frame.x(start), 0), (frame.x(end) - frame.x(start), STRIP_HEIGHT))
    for hour in record.hours:
        _draw_time(svg, frame, hour, 0, STRIP_HEIGHT - 0.5, _tooltip(zone))
    svg_line(svg, "axis", (0, STRIP_HEIGHT - 0.5), (WIDTH, STRIP_HEIGHT - 0.5))
    return svg_markup(svg)


class _Frame:
    """Every hour is as wide as any other; the one that has just begun is not full yet."""

    def __init__(self, record: Record) -> None:
        self._since = record.since
        self.hour_width = WIDTH / len(record.hours)

    def x(self, instant: datetime) -> float:
        return (instant - self._since) / HOUR * self.hour_width


def _draw_earnings(svg: Svg, frame: _Frame, record: Record, zone: ZoneInfo) -> None:
    most = max(hour.earned_microusd for hour in record.hours)
    words = f"earned, up to {format_usd(most)} an hour" if most else "earned: nothing"
    svg_text(svg, "start", (0, EARNED_TOP - 10), words)
    for hour in record.hours:
        if hour.earned_microusd:
            height = (EARNED_BOTTOM - EARNED_TOP) * hour.earned_microusd / most
            place = (frame.x(hour.starts_at) + frame.hour_width * 0.05, EARNED_BOTTOM - height)
            title = f"{_clock(hour.starts_at, zone)}: {format_usd(hour.earned_microusd)}"
            svg_rect(svg, "money", place, (frame.hour_width * 0.9, height), title)
    svg_line(svg, "axis", (0, EARNED_BOTTOM), (WIDTH, EARNED_BOTTOM))


def _draw_time(
    svg: Svg, frame: _Frame, hour: Hour, top: float, bottom: float, tooltip: Callable[[Hour], str]
) -> None:
    at = bottom
    for what in [*_ORDER, *sorted(set(hour.spent) - {*_ORDER, OFFLINE, OUTSIDE}), OUTSIDE]:
        height = (bottom - top) * (hour.spent.get(what, timedelta()) / HOUR)
        if height > 0:
            look = _LOOKS.get(what, _KEPT)
            width = frame.hour_width * look.width
            left = frame.x(hour.starts_at) + (frame.hour_width - width) / 2
            at -= height
            svg_rect(svg, look.css, (left, at), (width, height), tooltip(hour))


def _draw_clock(svg: Svg, frame: _Frame, record: Record, zone: ZoneInfo) -> None:
    for hour in record.hours:
        wall = hour.starts_at.astimezone(zone)
        if wall.hour % LABEL_EVERY_H == 0:
            x = frame.x(hour.starts_at)
            svg_line(svg, "axis", (x, TIME_BOTTOM), (x, TIME_BOTTOM + 4))
            # Words at the edges lean inwards, or they would be cut off.
            anchor = "start" if x < 14 else "end" if x > WIDTH - 14 else "middle"
            svg_text(svg, anchor, (x, TIME_BOTTOM + 20), f"{wall:%H}")
            if wall.hour == 0:
                svg_text(svg, anchor, (x, TIME_BOTTOM + 41), f"{wall:%a}")


def _tooltip(zone: ZoneInfo) -> Callable[[Hour], str]:
    return lambda hour: f"{_clock(hour.starts_at, zone)}: {spent_words(hour)}"


def _clock(instant: datetime, zone: ZoneInfo) -> str:
    return f"{instant.astimezone(zone):%H:%M}"


def _description(record: Record) -> str:
    """The hours in short, for whoever does not see them."""
    uses = sorted(record.spent.items(), key=lambda item: -item[1])
    spent = ", ".join(f"{use_words(what)} {hours_words(time)}" for what, time in uses if time >= MINUTE)
    return f"{spent[:1].upper()}{spent[1:]}; earned {format_usd(record.earned_microusd)}."


def uses_drawn(records: Iterable[Record]) -> list[tuple[str, str]]:
    """For a chart's key: (class, words) of what was drawn, all that kept devices from work as one."""
    drawn = {what for record in records for what in record.spent}
    kept = drawn - {WORKING, FREE, OUTSIDE, OFFLINE}
    keys = [(_LOOKS[what].css, use_words(what)) for what in (WORKING, FREE) if what in drawn]
    if kept:
        words = use_words(next(iter(kept))) if len(kept) == 1 else "kept from work"
        keys.append((_KEPT.css, words))
    keys += [(_LOOKS[OUTSIDE].css, use_words(OUTSIDE))] if OUTSIDE in drawn else []
    return [*keys, ("open", "idle window open")]
