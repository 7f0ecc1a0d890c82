"""Celery tasks of real money. Without a broker they run in the process that sends them."""

from celery import shared_task

from billing.due import payments_advance
from common.clock import utc_now


@shared_task
def advance_payments() -> None:
    """Do what payments wait for; any number may run at once."""
    payments_advance(now=utc_now())
