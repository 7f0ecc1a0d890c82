"""Refunds: unspent money of a top-up goes back to the card it came from.

The wallet is debited first; the money waits in transit until Stripe has taken the refund, and returns to the wallet
if Stripe, or later the card's bank, will not have it.
"""

import uuid
from datetime import datetime

from django.db import transaction
from django.db.models import F

from accounts.models import User
from billing.domain.amounts import whole_cents
from billing.domain.backoff import next_try
from billing.domain.entries import check_key
from billing.domain.stripe_entries import refund_entry, refund_returned_entry, refund_sent_entry
from billing.errors import (
    IdempotencyConflict,
    StripeRefused,
    StripeUnavailable,
    TopUpNotFound,
    TopUpNotRefundable,
)
from billing.gateway.calls import call_make
from billing.gateway.client import gateway
from billing.models import Refund, TopUp
from billing.posting import entries_post
from billing.services.standing import wallet_check
from billing.services.top_ups import CLIENT_KEY_MAX_CHARS
from common.clock import utc_now
from common.money import format_usd


def refund_create(
    *,
    user: User,
    top_up_id: uuid.UUID,
    amount_microusd: int,
    idempotency_key: str,
    now: datetime | None = None,
) -> Refund:
    """Refund a part of a top-up that the wallet still has. What Stripe does not answer now is asked again later.

    Raises AmountInvalid, KeyInvalid, IdempotencyConflict, InsufficientFunds, WalletFrozen, TopUpNotFound,
    TopUpNotRefundable, StripeNotConfigured.
    """
    now = now or utc_now()
    whole_cents(amount_microusd)
    check_key(idempotency_key, max_chars=CLIENT_KEY_MAX_CHARS)
    gateway()
    refund = _debit(user, top_up_id, amount_microusd, idempotency_key, now)
    refund_advance(refund_id=refund.pk, now=now)
    refund.refresh_from_db()
    return refund


@transaction.atomic
def _debit(
    user: User, top_up_id: uuid.UUID, amount_microusd: int, idempotency_key: str, now: datetime
) -> Refund:
    top_up = TopUp.objects.select_for_update().filter(pk=top_up_id, user=user).first()
    if top_up is None:
        raise TopUpNotFound("You have no such top-up.")
    refund = Refund.objects.filter(top_up=top_up, idempotency_key=idempotency_key).first()
    if refund is not None:
        if refund.amount_microusd != amount_microusd:
            raise IdempotencyConflict(idempotency_key)
        return refund
    wallet_check(user)
    left_microusd = top_up.amount_microusd - top_up.refunded_microusd
    if top_up.state != TopUp.State.PAID or top_up.disputes.exists() or amount_microusd > left_microusd:
        raise TopUpNotRefundable(
            f"At most {format_usd(left_microusd)} of a top-up that was paid and is not disputed can be refunded.",
            field="amount_microusd",
        )
    refund = Refund(
        top_up=top_up,
        idempotency_key=idempotency_key,
        amount_microusd=amount_microusd,
        created_at=now,
        next_try_at=now,
    )
    entries_post([refund_entry(refund_id=refund.pk, user_id=user.pk, amount_microusd=amount_microusd)])
    refund.save(force_insert=True)
    TopUp.objects.filter(pk=top_up.pk).update(refunded_microusd=F("refunded_microusd") + amount_microusd)
    return refund


def refund_advance(*, refund_id: uuid.UUID, now: datetime) -> None:
    """Have Stripe make the refund, unless that is done; without an answer it becomes due again later."""
    refund = Refund.objects.select_related("top_up").get(pk=refund_id)
    if refund.state != Refund.State.DEBITED:
        return
    params = {
        "payment_intent": refund.top_up.payment_intent_id,
        "amount": whole_cents(refund.amount_microusd),
    }
    try:
        made = call_make(gateway(), "refund", key=f"refund:{refund.pk}", params=params, now=now)
    except StripeUnavailable:
        Refund.objects.filter(pk=refund.pk, state=Refund.State.DEBITED).update(
            tries=refund.tries + 1, next_try_at=next_try(tries=refund.tries + 1, now=now)
        )
    except StripeRefused as refusal:
        _give_back(
            refund.pk, because=f"Stripe refused it ({refusal.stripe_code}); it is in your wallet again."
        )
    else:
        _note_sent(refund, stripe_id=made["id"])


@transaction.atomic
def _note_sent(refund: Refund, *, stripe_id: str) -> None:
    sent = Refund.objects.filter(pk=refund.pk, state=Refund.State.DEBITED).update(
        state=Refund.State.SENT, stripe_id=stripe_id, next_try_at=None
    )
    if sent:
        entries_post([refund_sent_entry(refund_id=refund.pk, amount_microusd=refund.amount_microusd)])


@transaction.atomic
def refund_bounced(*, stripe_id: str) -> bool:
    """The card's bank did not take it: Stripe has it again, and so has the wallet. False: none of ours yet."""
    refund = Refund.objects.filter(stripe_id=stripe_id).first()
    if refund is None:
        return False
    _give_back(refund.pk, because="The card's bank did not take it; it is in your wallet again.")
    return True


@transaction.atomic
def _give_back(refund_id: uuid.UUID, *, because: str) -> None:
    refund = Refund.objects.select_for_update(of=("self",)).select_related("top_up").get(pk=refund_id)
    if refund.state == Refund.State.RETURNED:
        return
    entries_post(
        [
            refund_returned_entry(
                refund_id=refund.pk,
                user_id=refund.top_up.user_id,
                amount_microusd=refund.amount_microusd,
                was_sent=refund.state == Refund.State.SENT,
            )
        ]
    )
    Refund.objects.filter(pk=refund.pk).update(state=Refund.State.RETURNED, because=because, next_try_at=None)
    TopUp.objects.filter(pk=refund.top_up_id).update(
        refunded_microusd=F("refunded_microusd") - refund.amount_microusd
    )
