"""Invoices: issued once, when a job is settled, under numbers without gaps; then rows that nothing changes."""

from datetime import UTC, datetime

from django.conf import settings
from django.db import transaction
from django.db.models import F

from billing.selectors import Charged, hold_charged
from marketplace.invoices.terms import Line, Work, in_cents, lines_of, tax_note, tax_within
from marketplace.models import Invoice, InvoiceLine, InvoiceYear, Job
from scheduler.selectors import accepted_leases


@transaction.atomic
def invoice_issue(*, job: Job, now: datetime) -> Invoice | None:
    """The job's invoice; None for one that cost nothing. Call it when the last charge is posted.

    Asked again it returns the one that there is. The year's row is locked until the transaction ends, and a number
    that is rolled back is given again: so numbers have no gaps.
    """
    issued = Invoice.objects.filter(job=job).first()
    if issued is not None:
        return issued
    charged = hold_charged(job.reference)
    if not charged.amount_microusd:
        return None
    lines = _lines(job)
    if sum(line.amount_microusd for line in lines) != charged.amount_microusd:
        raise RuntimeError(f"what job {job.pk} was charged is not what its results cost: {charged}")
    invoice = _sheet(job, charged, now)
    invoice.save(force_insert=True)
    InvoiceLine.objects.bulk_create(
        InvoiceLine(
            invoice=invoice,
            position=position,
            round_number=line.round_number,
            device_class=line.device_class,
            rate_microusd=line.rate_microusd,
            gpu_us=line.gpu_us,
            amount_microusd=line.amount_microusd,
        )
        for position, line in enumerate(lines, start=1)
    )
    return invoice


def _sheet(job: Job, charged: Charged, now: datetime) -> Invoice:
    year = now.astimezone(UTC).year
    tax_name, tax_basis_points = settings.INVOICE_TAX_NAME, settings.INVOICE_TAX_BASIS_POINTS
    return Invoice(
        year=year,
        sequence=_next_in(year),
        job=job,
        buyer=job.owner,
        job_name=job.name,
        seller=settings.INVOICE_SELLER,
        buyer_details=job.owner.invoice_address or job.owner.email,
        issued_at=now,
        total_microusd=charged.amount_microusd,
        total_cents=in_cents(charged.amount_microusd),
        fee_microusd=charged.fee_microusd,
        tax_name=tax_name,
        tax_basis_points=tax_basis_points,
        tax_microusd=tax_within(charged.amount_microusd, tax_basis_points),
        tax_note=tax_note(tax_name=tax_name, tax_basis_points=tax_basis_points),
    )


def _lines(job: Job) -> tuple[Line, ...]:
    if job.run_id is None:
        return ()
    return lines_of(
        Work(
            round_number=lease.shard.round.index + 1,
            device_class=lease.device_class,
            rate_microusd=lease.rate_microusd,
            gpu_us=lease.metered_gpu_us,
            charge_microusd=lease.charge_microusd,
        )
        for lease in accepted_leases(job.run_id)
    )


def _next_in(year: int) -> int:
    InvoiceYear.objects.get_or_create(year=year)
    # One statement that locks and counts; whoever comes second waits for the first to commit or roll back.
    InvoiceYear.objects.filter(year=year).update(issued=F("issued") + 1)
    return InvoiceYear.objects.get(year=year).issued
