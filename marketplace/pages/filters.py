"""How numbers read on pages. Templates have these filters without loading them (settings.TEMPLATES)."""

import math
from collections.abc import Sequence

from django import template

from common.money import US_PER_SECOND, format_usd

register = template.Library()

UNKNOWN = "\N{EN DASH}"
TIMES = " \N{MULTIPLICATION SIGN} "
_TONES = {"quoted": "warn", "running": "busy", "finished": "good", "cancelled": "quiet", "failed": "bad"}
_SCALES = ((10**9, "billion"), (10**6, "million"))


@register.filter
def usd(amount_microusd: int | None) -> str:
    """1_234 -> '$0.001234'; nothing known -> a dash."""
    return UNKNOWN if amount_microusd is None else format_usd(amount_microusd)


@register.filter
def signed_usd(amount_microusd: int) -> str:
    """For statements: money in carries its plus."""
    return f"+{format_usd(amount_microusd)}" if amount_microusd > 0 else format_usd(amount_microusd)


@register.filter
def seconds(gpu_us: int | None) -> str:
    """Microseconds in the unit that suits them: 1_200 -> '1.2 ms', 90_000_000 -> '1 min 30 s'."""
    total_s = (gpu_us or 0) / US_PER_SECOND
    if total_s < 1:
        return f"{_three_digits(total_s * 1000)} ms"
    if total_s < 60:
        return f"{_three_digits(total_s)} s"
    minutes, rest_s = divmod(round(total_s), 60)
    hours, rest_min = divmod(minutes, 60)
    return f"{hours} h {rest_min} min" if hours else f"{minutes} min {rest_s} s"


@register.filter
def big(number: int | None) -> str:
    """12_345 -> '12,345', 23_456_789 -> '23.5 million'."""
    if number is None:
        return UNKNOWN
    for scale, word in _SCALES:
        if number >= scale:
            return f"{number / scale:.3g} {word}"
    return f"{number:,}"


@register.filter
def percent(share: float | None) -> str:
    """0.9634 -> '96.3 %'."""
    return UNKNOWN if share is None or not math.isfinite(share) else f"{share * 100:.1f} %"


@register.filter
def figure(number: float | None) -> str:
    """A measured number, as a loss: four digits that matter."""
    return UNKNOWN if number is None or not math.isfinite(number) else f"{number:.4g}"


@register.filter
def shape(sizes: Sequence[int]) -> str:
    """[1, 8, 8] -> '1 by 8 by 8', with the sign for it; a single value is a shape too."""
    return TIMES.join(str(size) for size in sizes) or "1"


@register.filter
def tone(state: str) -> str:
    """The badge of a job's state, as site.css colours badges."""
    return _TONES[state]


@register.filter
def words(name: str) -> str:
    """A setting's name as people write it: 'learning_rate' -> 'learning rate'."""
    return name.replace("_", " ")


@register.filter
def share_of(part: float, whole: float) -> float:
    """For meters, which need a number from 0 to 1 even where the whole is nothing yet."""
    return min(1.0, max(0.0, part / whole)) if whole else 0.0


def _three_digits(number: float) -> str:
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"
