"""Quotes end: one that nobody confirms lets its blobs go, and its prices with it."""

from datetime import datetime

from django.db import transaction

from blobs.services import blob_release
from marketplace.jobs.transitions import job_move
from marketplace.limits import EXPIRED_AT_ONCE, QUOTE_VALID
from marketplace.models import Job

BECAUSE = "quote_expired"


def quotes_expire(*, now: datetime, at_most: int = EXPIRED_AT_ONCE) -> int:
    """Drop quotes whose time is over, the oldest first; returns how many."""
    over = Job.objects.filter(state=Job.State.QUOTED, quote_expires_at__lte=now).order_by("quote_expires_at")
    return sum(quote_expire(job=job, now=now) for job in over[:at_most])


@transaction.atomic
def quote_expire(*, job: Job, now: datetime) -> bool:
    """Drop a quote whose time is over; False if it has been confirmed or cancelled meanwhile."""
    dropped = job_move(
        job_id=job.pk,
        source=Job.State.QUOTED,
        target=Job.State.CANCELLED,
        ended_at=now,
        ended_because=BECAUSE,
        ended_message=f"Its quote was not confirmed within {QUOTE_VALID.days} days; nothing was held.",
    )
    if dropped:
        blob_release(holder=job.reference)
    return dropped
