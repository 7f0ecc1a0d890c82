"""What an invoice says, worked out from what was charged. Pure.

The buyer has paid the charges, and nothing else: so the total is their sum, to the micro-USD, and both the platform's
fee and any tax are contained in it. It is put in cents once, at the end.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from common.money import BASIS_POINTS

MICROUSD_PER_CENT = 10_000
ROUNDING = (
    "Amounts are exact to the millionth of a dollar; the total is rounded to whole cents, half a cent up."
)


@dataclass(frozen=True, slots=True)
class Work:
    """An accepted result: when, on what, for how long, and what was charged for it."""

    round_number: int  # from 1
    device_class: str
    rate_microusd: int  # for a GPU-second
    gpu_us: int
    charge_microusd: int


@dataclass(frozen=True, slots=True)
class Line:
    """All results of one round, or of some rounds in a row, by devices of one class."""

    round_number: int
    last_round: int
    device_class: str
    rate_microusd: int
    gpu_us: int
    amount_microusd: int


def lines_of(works: Iterable[Work], *, rounds_a_line: int = 1) -> tuple[Line, ...]:
    """By round, then class. A line differs from time x rate by less than a micro-USD for each of its results.

    What a result leaves over of a micro-USD is carried to the next one of the same job: it is never rounded up.
    """
    lines: dict[tuple[int, str, int], Line] = {}
    for work in works:
        key = ((work.round_number - 1) // rounds_a_line, work.device_class, work.rate_microusd)
        line = lines.get(key) or Line(work.round_number, 0, work.device_class, work.rate_microusd, 0, 0)
        lines[key] = Line(
            round_number=min(line.round_number, work.round_number),
            last_round=max(line.last_round, work.round_number),
            device_class=line.device_class,
            rate_microusd=line.rate_microusd,
            gpu_us=line.gpu_us + work.gpu_us,
            amount_microusd=line.amount_microusd + work.charge_microusd,
        )
    return tuple(lines[key] for key in sorted(lines))


def few_lines_of(works: Sequence[Work], *, at_most: int) -> tuple[Line, ...]:
    """As few rounds in a line as make `at_most` lines or less, if classes alone are not more than that."""
    rounds_a_line, rounds = 1, max((work.round_number for work in works), default=1)
    while len(lines := lines_of(works, rounds_a_line=rounds_a_line)) > at_most and rounds_a_line < rounds:
        rounds_a_line *= 2
    return lines


def tax_within(amount_microusd: int, tax_basis_points: int) -> int:
    """The tax contained in an amount that includes it, to the nearest micro-USD."""
    whole = BASIS_POINTS + tax_basis_points
    return (2 * amount_microusd * tax_basis_points + whole) // (2 * whole)


def in_cents(amount_microusd: int) -> int:
    """Whole cents, half a cent up."""
    return (amount_microusd + MICROUSD_PER_CENT // 2) // MICROUSD_PER_CENT


def tax_note(*, tax_name: str, tax_basis_points: int) -> str:
    """What of taxes is handled and what is not; printed on the invoice."""
    beyond = "Rates by place or kind of customer, reverse charge and tax numbers are not handled."
    if not tax_basis_points:
        return f"This invoice states no tax: no rate is set at this site. {beyond}"
    percent = f"{tax_basis_points / 100:g} %"
    return f"{tax_name} of {percent} is contained in the total, the same rate for everyone. {beyond}"
