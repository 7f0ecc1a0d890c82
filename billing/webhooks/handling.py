"""Handles stored events, each once, however often and in whatever order they came.

Its effect and its new state are one transaction behind a lock of its row. Order does not matter, because an effect
is a move that its object's state allows or not; what is told of an object that we do not know yet waits (`early`)
and comes again, oldest first.
"""

import json
import logging
from collections.abc import Callable
from datetime import datetime
from typing import Any

from django.db import transaction

from billing.domain.backoff import next_try
from billing.gateway.client import Json
from billing.models import StripeEvent
from billing.services.auto_top_up_terms import auto_top_up_card_saved, auto_top_up_page_left
from billing.services.auto_top_ups import auto_payment_came, auto_payment_failed
from billing.services.disputes import dispute_note, dispute_reinstated, dispute_withdrawn
from billing.services.payout_accounts import payout_account_sync
from billing.services.payouts import OddReversal, payout_bank_failed, payout_paid, payout_reversed
from billing.services.refunds import refund_bounced
from billing.services.top_ups import TopUpMismatch, top_up_expire, top_up_paid

log = logging.getLogger(__name__)

State = StripeEvent.State
DUE_AT_ONCE = 200
NOT_OURS = "It is about nothing that this site knows."


def events_handle_due(*, now: datetime) -> int:
    """Handle what is due, in the order in which it happened; returns how many events there were."""
    due = StripeEvent.objects.filter(next_try_at__lte=now).order_by("occurred_at", "id")[:DUE_AT_ONCE]
    ids = list(due.values_list("pk", flat=True))
    for event_pk in ids:
        event_handle(event_pk=event_pk, now=now)
    return len(ids)


def event_handle(*, event_pk: int, now: datetime) -> None:
    """Handle one event, unless that is done. What goes wrong is noted and, if time may heal it, tried again."""
    event = StripeEvent.objects.get(pk=event_pk)
    if event.state in (State.HANDLED, State.IGNORED):
        return
    try:
        if event.type == "checkout.session.completed" and _mode(event) == "setup":
            _card_saved(event, now)
        elif event.type == "account.updated" or event.type.startswith("v2.core.account"):
            _look(event, now)
        else:
            _take_effect(event_pk, now)
    except (TopUpMismatch, OddReversal) as problem:
        _note(event, State.FAILED, str(problem), next_try_at=None)
    except Exception as problem:
        log.exception("event %s failed; it will be tried again", event.event_id)
        _note(
            event, State.FAILED, type(problem).__name__, next_try_at=next_try(tries=event.tries + 1, now=now)
        )


def _look(event: StripeEvent, now: datetime) -> None:
    """An account has changed: ask Stripe how it stands now. No transaction is open while it answers."""
    known = payout_account_sync(stripe_id=event.object_id or event.stripe_account, now=now)
    _conclude(event, State.HANDLED if known else State.IGNORED, now)


def _mode(event: StripeEvent) -> str:
    return str(json.loads(event.body)["data"]["object"].get("mode", ""))


def _card_saved(event: StripeEvent, now: datetime) -> None:
    """The event names the card only by way of another object: ask for it, with no transaction open meanwhile."""
    known = auto_top_up_card_saved(json.loads(event.body)["data"]["object"], now=now)
    _conclude(event, State.HANDLED if known else State.IGNORED, now)


@transaction.atomic
def _take_effect(event_pk: int, now: datetime) -> None:
    event = StripeEvent.objects.select_for_update().get(pk=event_pk)
    if event.state in (State.HANDLED, State.IGNORED):
        return
    effect = _EFFECTS.get(event.type)
    if effect is None:
        _conclude(event, State.IGNORED, now)
    elif effect(json.loads(event.body)["data"]["object"], now):
        _conclude(event, State.HANDLED, now)
    else:
        again_at = next_try(tries=event.tries + 1, now=now)
        if again_at is None:
            _note(event, State.IGNORED, NOT_OURS, next_try_at=None)
        else:
            _note(event, State.EARLY, "", next_try_at=again_at)


def _session_completed(session: Json, now: datetime) -> bool:
    """Of a payment that takes days, `completed` comes before the money: `async_payment_succeeded` is the one."""
    if session["payment_status"] == "paid":
        top_up_paid(session, now=now)
    return True


def _session_expired(session: Json, now: datetime) -> bool:
    if session.get("mode") == "setup":
        auto_top_up_page_left(session)
        return True
    top_up_expire(session, because="The payment page was not used in time.", now=now)
    return True


def _session_failed(session: Json, now: datetime) -> bool:
    top_up_expire(session, because="The payment failed.", now=now)
    return True


def _transfer_reversed(transfer: Json, now: datetime) -> bool:
    if not transfer["reversed"]:
        raise OddReversal(f"{transfer['amount_reversed']} of {transfer['amount']} of {transfer['id']}")
    return payout_reversed(transfer_id=transfer["id"], now=now)


def _bank_failed(payout: Json, now: datetime) -> bool:
    because = (
        f"Your bank did not take it ({payout.get('failure_code') or payout['status']}); it waits in your account "
        "at Stripe. Put your bank details right there, then send it again."
    )
    return payout_bank_failed(bank_payout_id=payout["id"], because=because, now=now)


def _refund_updated(refund: Json, now: datetime) -> bool:
    return refund["status"] not in ("failed", "canceled") or refund_bounced(stripe_id=refund["id"])


_EFFECTS: dict[str, Callable[[Json, datetime], bool]] = {
    "checkout.session.completed": _session_completed,
    "checkout.session.async_payment_succeeded": _session_completed,
    "checkout.session.async_payment_failed": _session_failed,
    "checkout.session.expired": _session_expired,
    "payment_intent.succeeded": lambda intent, now: auto_payment_came(intent, now=now),
    "payment_intent.payment_failed": lambda intent, now: auto_payment_failed(intent, now=now),
    "refund.updated": _refund_updated,
    "refund.failed": _refund_updated,
    "charge.dispute.created": lambda dispute, now: dispute_note(dispute),
    "charge.dispute.updated": lambda dispute, now: dispute_note(dispute),
    "charge.dispute.closed": lambda dispute, now: dispute_note(dispute),
    "charge.dispute.funds_withdrawn": lambda dispute, now: dispute_withdrawn(dispute, now=now),
    "charge.dispute.funds_reinstated": lambda dispute, now: dispute_reinstated(dispute, now=now),
    "transfer.reversed": _transfer_reversed,
    "payout.paid": lambda payout, now: payout_paid(bank_payout_id=payout["id"], now=now),
    "payout.failed": _bank_failed,
    "payout.canceled": _bank_failed,
}


def _conclude(event: StripeEvent, state: StripeEvent.State, now: datetime) -> None:
    _note(event, state, "", next_try_at=None, handled_at=now)


def _note(event: StripeEvent, state: StripeEvent.State, note: str, **fields: Any) -> None:
    # Only what is not concluded: another process may have been quicker.
    StripeEvent.objects.filter(pk=event.pk).exclude(state__in=(State.HANDLED, State.IGNORED)).update(
        state=state, note=note[:200], tries=event.tries + 1, **fields
    )
