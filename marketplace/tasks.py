"""Celery tasks of the buyer's side. Without a broker they run in the process that sends them."""

from celery import shared_task

from marketplace.jobs.settling import settle_pending


# A pass that no worker came to in time is not missed: the next one does its work.
@shared_task(expires=60)
def settle() -> None:
    """Settle what the scheduler has news of; any number may run at once."""
    settle_pending()
