"""Earnings by day as bars in SVG, drawn on the server; every value is a tooltip and stands in the page's table."""

from collections.abc import Sequence
from datetime import date

from django.utils.safestring import SafeString

from common.money import format_usd
from marketplace.pages.svg import svg_line, svg_markup, svg_rect, svg_root, svg_text

Day = tuple[date, int]  # and what it brought, in micro-USD

WIDTH, TOP, BOTTOM, HEIGHT = 420.0, 28.0, 150.0, 178.0
BAR = 0.8  # of the room that a day has
LABEL_EVERY = 7


def day_chart(days: Sequence[Day], *, title: str) -> SafeString:
    """A bar for each day, oldest first; the newest day's name is the last of every seventh."""
    most, total = max(amount for _, amount in days), sum(amount for _, amount in days)
    svg = svg_root(title, f"{format_usd(total)} in {len(days)} days.", size=(WIDTH, HEIGHT))
    svg_text(svg, "start", (0, TOP - 10), f"up to {format_usd(most)} a day" if most else "nothing yet")
    room = WIDTH / len(days)
    for index, (day, amount) in enumerate(days):
        left = index * room + room * (1 - BAR) / 2
        if amount:
            height = (BOTTOM - TOP) * amount / most
            words = f"{day:%a} {day.day} {day:%b}: {format_usd(amount)}"
            svg_rect(svg, "money", (left, BOTTOM - height), (room * BAR, height), words)
        if (len(days) - 1 - index) % LABEL_EVERY == 0:
            # Words at the edges lean inwards, or they would be cut off.
            anchor = "end" if index == len(days) - 1 else "start" if index < LABEL_EVERY / 2 else "middle"
            x = {"end": WIDTH, "start": left, "middle": left + room * BAR / 2}[anchor]
            svg_text(svg, anchor, (x, BOTTOM + 20), f"{day.day} {day:%b}")
    svg_line(svg, "axis", (0, BOTTOM), (WIDTH, BOTTOM))
    return svg_markup(svg)
