"""Whatever money waits for: events to handle, refunds and payouts to see through, news and e-mails to deliver.

`payments_advance` is run every few seconds, by any number of processes. What it finds due was stored by whoever began
it, so that a process may die at any moment and another goes on.
"""

import logging
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import models

from billing.delivering import delivery_send
from billing.domain.amounts import MICROUSD_PER_CENT
from billing.errors import BillingError
from billing.models import AutoTopUp, Notice, OwnerDelivery, Payout, PayoutAccount, Refund, TopUp
from billing.selectors import available_microusd
from billing.services.auto_top_ups import auto_payment_advance, auto_top_up_advance
from billing.services.notices import notice_send
from billing.services.payout_steps import payout_advance
from billing.services.payouts import payout_request
from billing.services.refunds import refund_advance
from billing.webhooks.handling import events_handle_due

log = logging.getLogger(__name__)

AT_ONCE = 100
AFTER_A_DEFECT = timedelta(hours=1)


def payments_advance(*, now: datetime) -> None:
    """Do what is due; a failure of one is logged and holds up no other."""
    if settings.STRIPE_SECRET_KEY:
        _real_money_advance(now=now)
    # Also on a site without Stripe: an operator may freeze a wallet there.
    _see_through(Notice, lambda pk: notice_send(notice_id=pk, now=now), now)


def _real_money_advance(*, now: datetime) -> None:
    events_handle_due(now=now)
    payouts_schedule(now=now)
    _see_through(AutoTopUp, lambda pk: auto_top_up_advance(user_id=pk, now=now), now)
    _see_through(TopUp, lambda pk: auto_payment_advance(top_up_id=pk, now=now), now)
    _see_through(Refund, lambda pk: refund_advance(refund_id=pk, now=now), now)
    _see_through(Payout, lambda pk: payout_advance(payout_id=pk, now=now), now)
    _see_through(OwnerDelivery, lambda pk: delivery_send(delivery_id=pk, now=now), now)


def payouts_schedule(*, now: datetime) -> None:
    """On a Monday (UTC) or after: ask, once a week, for what each owner who wants it has available."""
    monday = _monday(now)
    waiting = PayoutAccount.objects.filter(weekly=True).exclude(weekly_done_on__gte=monday)
    for account in waiting.select_related("user")[:AT_ONCE]:
        _pay_weekly(account, monday, now)


def _pay_weekly(account: PayoutAccount, monday: date, now: datetime) -> None:
    """A refusal is kept as a sentence for the owner, and nothing is tried again before the next Monday."""
    key, note = f"weekly:{monday}", ""
    available = available_microusd(account.user, now=now)
    amount_microusd = available - available % MICROUSD_PER_CENT
    if amount_microusd and not Payout.objects.filter(user=account.user, idempotency_key=key).exists():
        try:
            payout_request(user=account.user, amount_microusd=amount_microusd, idempotency_key=key, now=now)
        except BillingError as refusal:
            note = refusal.message
    PayoutAccount.objects.filter(pk=account.pk).update(weekly_done_on=monday, weekly_note=note[:200])


def _monday(now: datetime) -> date:
    today = now.astimezone(UTC).date()
    return today - timedelta(days=today.weekday())


def _see_through(
    model: type[AutoTopUp | TopUp | Refund | Payout | OwnerDelivery | Notice],
    advance: Callable[[Any], None],
    now: datetime,
) -> None:
    manager: models.Manager[Any] = model.objects
    rows = manager.filter(next_try_at__lte=now).order_by("next_try_at")
    for pk in list(rows.values_list("pk", flat=True)[:AT_ONCE]):
        try:
            advance(pk)
        except Exception:
            log.exception("%s %s failed; it will be looked at again in a while", model.__name__, pk)
            manager.filter(pk=pk, next_try_at__lte=now).update(next_try_at=now + AFTER_A_DEFECT)
