"""An invoice as people read it, the same on the page and in the PDF."""

from dataclasses import dataclass

from accounts.domain.device_classes import DEVICE_CLASSES
from common.money import MICROUSD_PER_USD, US_PER_SECOND, format_usd
from marketplace.invoices.terms import ROUNDING, Line, Work, few_lines_of, lines_of
from marketplace.models import Invoice


@dataclass(frozen=True, slots=True)
class SheetLine:
    rounds: str  # one, or '1 to 32'
    device: str
    gpu_seconds: str
    rate: str
    amount: str


@dataclass(frozen=True, slots=True)
class Sheet:
    number: str
    issued_on: str
    seller: tuple[str, ...]
    buyer: tuple[str, ...]
    job: str
    job_reference: str
    lines: tuple[SheetLine, ...]
    gpu_seconds: str  # of all lines
    sums: tuple[tuple[str, str], ...]  # words and amount, the total last
    notes: tuple[str, ...]


def sheet_of(invoice: Invoice, *, at_most: int | None = None) -> Sheet:
    """With a line for each round and class, or with several rounds a line to make `at_most` of them."""
    works = [
        Work(line.round_number, line.device_class, line.rate_microusd, line.gpu_us, line.amount_microusd)
        for line in invoice.lines.all()
    ]
    lines = lines_of(works) if at_most is None else few_lines_of(works, at_most=at_most)
    return Sheet(
        number=invoice.number,
        issued_on=f"{invoice.issued_at.day} {invoice.issued_at:%B %Y}",
        seller=tuple(invoice.seller.splitlines()),
        buyer=tuple(invoice.buyer_details.splitlines()),
        job=invoice.job_name,
        job_reference=str(invoice.job_id),
        lines=tuple(
            SheetLine(
                rounds=_rounds(line),
                device=_label(line.device_class),
                gpu_seconds=_seconds(line.gpu_us),
                rate=format_usd(line.rate_microusd),
                amount=_exact(line.amount_microusd),
            )
            for line in lines
        ),
        gpu_seconds=_seconds(sum(line.gpu_us for line in lines)),
        sums=_sums(invoice),
        notes=(
            "Only GPU-seconds of accepted results are billed, by the rate of the device's class, rounded down; what "
            "is left of a millionth of a dollar is carried to the next result.",
            ROUNDING,
            invoice.tax_note,
            "Paid from your wallet. Nothing is due.",
        ),
    )


def _sums(invoice: Invoice) -> tuple[tuple[str, str], ...]:
    owners = invoice.total_microusd - invoice.fee_microusd
    tax = f"{invoice.tax_name} contained ({invoice.tax_basis_points / 100:g} %)"
    return (
        ("To the owners of the devices", _exact(owners)),
        ("Platform fee", _exact(invoice.fee_microusd)),
        ("Sum, exact", _exact(invoice.total_microusd)),
        (tax, _exact(invoice.tax_microusd)),
        ("Total, USD", f"${invoice.total_cents // 100:,}.{invoice.total_cents % 100:02d}"),
    )


def _rounds(line: Line) -> str:
    return (
        str(line.round_number)
        if line.round_number == line.last_round
        else f"{line.round_number} to {line.last_round}"
    )


def _exact(amount_microusd: int) -> str:
    """All six decimals, so that a column of them can be added up by eye."""
    return f"${amount_microusd // MICROUSD_PER_USD:,}.{amount_microusd % MICROUSD_PER_USD:06d}"


def _label(device_class: str) -> str:
    known = DEVICE_CLASSES.get(device_class)
    return known.label if known else device_class


def _seconds(gpu_us: int) -> str:
    """To the microsecond, as it is metered."""
    return f"{gpu_us // US_PER_SECOND:,}.{gpu_us % US_PER_SECOND:06d}"
