"""What a payout has Stripe do: transfer the money to the owner's account, then pay it to the owner's bank.

`payout_advance` does whatever is next and may be called at any time, again and by several at once: every request is
stored before it is made (`billing.gateway.calls`), every move is made once (`billing.services.payouts`).
"""

import uuid
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial

from billing.domain.amounts import whole_cents
from billing.domain.backoff import next_try
from billing.domain.capability import refusal_in_words
from billing.errors import PayoutsFrozen, StripeRefused, StripeUnavailable
from billing.gateway.calls import call_make
from billing.gateway.client import StripeGateway, gateway
from billing.models import Payout
from billing.services.payouts import (
    payout_bank_refused,
    payout_may_begin,
    payout_refused,
    payout_transferred,
)

FROZEN_LOOK_EVERY = timedelta(hours=6)
BANK_REFUSED = "Your bank account at Stripe cannot take it ({}). Put it right there, then send it again."


def payout_advance(*, payout_id: uuid.UUID, now: datetime) -> None:
    """Do what is next for a payout, as far as it goes now; what Stripe leaves open becomes due again later."""
    stripe = gateway()
    try:
        _transfer(stripe, payout_id, now)
        _send_to_bank(stripe, payout_id, now)
    except StripeUnavailable:
        payout = Payout.objects.get(pk=payout_id)
        _due(payout_id, next_try(tries=payout.tries + 1, now=now), tries=payout.tries + 1)
    except PayoutsFrozen:
        _due(payout_id, now + FROZEN_LOOK_EVERY)


def _transfer(stripe: StripeGateway, payout_id: uuid.UUID, now: datetime) -> None:
    payout = Payout.objects.select_related("user").get(pk=payout_id)
    if payout.state != Payout.State.DEBITED:
        return
    key = f"payout:{payout.pk}:transfer"
    params = {
        "amount": whole_cents(payout.net_microusd),
        "currency": "usd",
        "destination": payout.stripe_account,
        "transfer_group": f"payout:{payout.pk}",
    }
    try:
        made = call_make(stripe, "transfer", key=key, params=params, now=now, may_begin=_may_begin(payout))
    except StripeRefused as refusal:
        payout_refused(payout_id=payout.pk, because=refusal_in_words(refusal.stripe_code), now=now)
    else:
        payout_transferred(
            payout_id=payout.pk,
            transfer_id=made["id"],
            arrived_as=made.get("destination_payment") or "",
            now=now,
        )


def _send_to_bank(stripe: StripeGateway, payout_id: uuid.UUID, now: datetime) -> None:
    """Pay out what arrived, in the currency in which it did, once it is available there."""
    payout = Payout.objects.get(pk=payout_id)
    if payout.state != Payout.State.TRANSFERRED or payout.bank_payout_id:
        return
    key = f"payout:{payout.pk}:bank:{payout.bank_attempt}"
    try:
        arrived = stripe.arrival(payout.arrived_as, stripe_account=payout.stripe_account)
        available_at = datetime.fromtimestamp(arrived["available_on"], tz=UTC)
        if available_at > now:
            _due(payout_id, available_at)
            return
        params = {"amount": arrived["net"], "currency": arrived["currency"]}
        made = call_make(
            stripe,
            "payout",
            key=key,
            params=params,
            now=now,
            stripe_account=payout.stripe_account,
            may_begin=_may_begin(payout),
        )
    except StripeRefused as refusal:
        payout_bank_refused(
            payout_id=payout.pk, because=BANK_REFUSED.format(refusal.stripe_code or "no code given"), now=now
        )
    else:
        Payout.objects.filter(pk=payout_id, bank_payout_id="", bank_attempt=payout.bank_attempt).update(
            bank_payout_id=made["id"], next_try_at=None, tries=0
        )


def _may_begin(payout: Payout) -> Callable[[], None]:
    """A freeze stops what has not begun; what has must be seen through."""
    return partial(payout_may_begin, payout_id=payout.pk)


def _due(payout_id: uuid.UUID, at: datetime | None, **fields: int) -> None:
    """Look again then; never, after too many tries: the operators' list has it."""
    waiting = (Payout.State.DEBITED, Payout.State.TRANSFERRED)
    Payout.objects.filter(pk=payout_id, state__in=waiting).update(next_try_at=at, **fields)
