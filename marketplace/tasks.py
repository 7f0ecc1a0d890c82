"""Celery tasks of the buyer's side. Without a broker they run in the process that sends them."""

from celery import shared_task

from common.clock import utc_now
from marketplace.jobs.expiry import quotes_expire
from marketplace.jobs.pausing import freezes_pending
from marketplace.jobs.settling import settle_pending


# A pass that no worker came to in time is not missed: the next one does its work.
@shared_task(expires=60)
def settle() -> None:
    """Take up what the scheduler and billing have news of, drop old quotes; any number may run at once."""
    freezes_pending()
    settle_pending()
    quotes_expire(now=utc_now())
