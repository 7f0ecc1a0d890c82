"""Automatic top-ups: a wallet that runs low is filled from the card that its buyer has saved, one payment at a time.

Each is a `TopUp` like any other, and its request is stored before it is made. A bank that wants the buyer to confirm
(3-D Secure) gets no second request: the payment is let go, and the buyer is sent to a page where it can be confirmed.
"""

import logging
import uuid
from datetime import datetime

from django.conf import settings
from django.db import transaction

from accounts.models import User
from billing.domain.amounts import whole_cents
from billing.domain.auto_top_ups import Terms, after_decline, verdict
from billing.domain.backoff import next_try
from billing.errors import StripeRefused, StripeUnavailable, WalletFrozen
from billing.gateway.calls import call_make
from billing.gateway.client import Json, StripeGateway, gateway
from billing.models import AutoTopUp, StripeCall, TopUp
from billing.selectors import auto_top_up_spent_microusd, wallet_balance
from billing.services.auto_top_up_terms import auto_top_up_end
from billing.services.notices import notice_write
from billing.services.standing import wallet_check
from billing.services.top_ups import Payment, page_params, top_up_fill

log = logging.getLogger(__name__)

AUTHENTICATE = "authentication_required"
LIVE = (TopUp.State.CREATED, TopUp.State.OPEN)


class _SwitchedOff(Exception):
    """The buyer was quicker than the request."""


def auto_top_up_advance(*, user_id: int, now: datetime) -> None:
    """See whether this wallet is low, and begin a top-up if it is; have Stripe forget a removed card."""
    auto = AutoTopUp.objects.get(pk=user_id)
    if auto.detach_id and not _detach(auto, now):
        return
    _begin(user_id, now)


@transaction.atomic
def _begin(user_id: int, now: datetime) -> None:
    auto = AutoTopUp.objects.select_for_update(of=("self",)).select_related("user").get(pk=user_id)
    if auto.state != AutoTopUp.State.ON:
        return
    mine = TopUp.objects.filter(user=auto.user, automatic=True)
    if mine.filter(state__in=LIVE).exists() or _is_frozen(auto.user):
        AutoTopUp.objects.filter(pk=user_id).update(next_try_at=None)
        return
    terms = Terms(auto.threshold_microusd, auto.amount_microusd, auto.monthly_cap_microusd)
    found = verdict(
        terms,
        balance_microusd=wallet_balance(auto.user),
        spent_microusd=auto_top_up_spent_microusd(auto.user, now=now),
        now=now,
    )
    AutoTopUp.objects.filter(pk=user_id).update(next_try_at=found.again_at, note=found.note, tries=0)
    if found.tops_up:
        TopUp.objects.create(
            user=auto.user,
            automatic=True,
            idempotency_key=f"auto:{uuid.uuid4()}",
            amount_microusd=auto.amount_microusd,
            created_at=now,
            next_try_at=now,
        )


def auto_payment_advance(*, top_up_id: uuid.UUID, now: datetime) -> None:
    """Charge the saved card for a top-up that was begun, or go on from whatever became of that."""
    top_up = TopUp.objects.select_related("user").get(pk=top_up_id)
    if top_up.state != TopUp.State.CREATED:
        return
    auto, key = AutoTopUp.objects.get(user=top_up.user), f"top_up:{top_up.pk}"
    stored = StripeCall.objects.filter(key=key).first()
    params = stored.params if stored else _payment_params(top_up, auto)  # of the card it was begun with
    stripe = gateway()
    try:
        made = call_make(
            stripe, "payment_intent", key=key, params=params, now=now, may_begin=lambda: _still_on(auto.pk)
        )
        if made["status"] == "succeeded":
            cents = whole_cents(top_up.amount_microusd)
            top_up_fill(top_up_id=top_up.pk, payment=Payment(cents, "usd", made["id"]), now=now)
        else:  # an event will tell
            TopUp.objects.filter(pk=top_up.pk, state=TopUp.State.CREATED).update(next_try_at=None)
    except _SwitchedOff:
        _refuse(top_up, because="It was switched off before the card was charged.")
    except StripeUnavailable:
        _later(top_up, now)
    except StripeRefused as refusal:
        _refused(stripe, top_up, auto, refusal, now)


def auto_payment_came(intent: Json, *, now: datetime) -> bool:
    """An event of a payment that was made here; one that Stripe's page made is told of by its session."""
    top_up_id = _top_up_id(intent)
    if top_up_id is not None:
        payment = Payment(intent["amount"], intent["currency"], intent["id"])
        top_up_fill(top_up_id=top_up_id, payment=payment, now=now)
    return True


def auto_payment_failed(intent: Json, *, now: datetime) -> bool:
    """The event of a payment that was under way. One that was refused at once has been seen to already."""
    top_up_id = _top_up_id(intent)
    if top_up_id is None:
        return True
    top_up = TopUp.objects.select_related("user").filter(pk=top_up_id, automatic=True).first()
    answered = StripeCall.objects.filter(key=f"top_up:{top_up_id}", state=StripeCall.State.ANSWERED).exists()
    if top_up is not None and answered and top_up.state == TopUp.State.CREATED:
        problem = intent.get("last_payment_error") or {}
        _declined(top_up, problem.get("decline_code") or problem.get("code") or "", now)
    return True


def _top_up_id(intent: Json) -> uuid.UUID | None:
    try:
        return uuid.UUID((intent.get("metadata") or {})["top_up"])
    except (KeyError, ValueError):
        return None


def _payment_params(top_up: TopUp, auto: AutoTopUp) -> Json:
    return {
        "amount": whole_cents(top_up.amount_microusd),
        "currency": "usd",
        "customer": auto.customer_id,
        "payment_method": auto.payment_method_id,
        "payment_method_types": ["card"],
        "off_session": True,
        "confirm": True,
        "description": "Nightshift credit",
        "receipt_email": top_up.user.email,
        "metadata": {"top_up": str(top_up.pk)},
    }


def _still_on(user_id: int) -> None:
    auto = AutoTopUp.objects.select_for_update().get(pk=user_id)
    if auto.state != AutoTopUp.State.ON:
        raise _SwitchedOff


def _refused(
    stripe: StripeGateway, top_up: TopUp, auto: AutoTopUp, refusal: StripeRefused, now: datetime
) -> None:
    """The bank said no, or wants the buyer to confirm. The payment is let go first, so that it can never be made."""
    try:
        if refusal.about:
            _let_go(stripe, refusal.about, now)
        if AUTHENTICATE not in (refusal.stripe_code, refusal.decline_code):
            _declined(top_up, refusal.decline_code or refusal.stripe_code, now)
            return
        params = {**page_params(top_up), "customer": auto.customer_id}
        del params["customer_email"]  # the customer has one
        page = call_make(
            stripe, "checkout_session", key=f"top_up:{top_up.pk}:confirm", params=params, now=now
        )
        _ask_buyer(top_up, page, now)
    except StripeUnavailable:
        _later(top_up, now)
    except StripeRefused as problem:
        _declined(top_up, problem.stripe_code, now)


def _let_go(stripe: StripeGateway, intent_id: str, now: datetime) -> None:
    try:
        call_make(
            stripe, "payment_intent_cancel", key=f"{intent_id}:cancel", params={"id": intent_id}, now=now
        )
    except StripeRefused:
        return  # it is over already


@transaction.atomic
def _ask_buyer(top_up: TopUp, page: Json, now: datetime) -> None:
    opened = TopUp.objects.filter(pk=top_up.pk, state=TopUp.State.CREATED).update(
        state=TopUp.State.OPEN, session_id=page["id"], page_url=page["url"], next_try_at=None
    )
    if opened:
        body = (
            "Your bank wants you to confirm a payment into your Nightshift wallet. Nothing has been charged. "
            f"You can confirm it here:\n\n{settings.PUBLIC_URL}/payments/top-ups/{top_up.pk}/\n\n"
            "If you do not, nothing is charged, and automatic top-up is switched off."
        )
        notice_write(user=top_up.user, subject="Please confirm a payment", body=body, now=now)


@transaction.atomic
def _declined(top_up: TopUp, code: str, now: datetime) -> None:
    if not _refuse(top_up, because=f"Your card was declined ({code or 'no reason given'})."):
        return
    auto = AutoTopUp.objects.select_for_update().get(pk=top_up.user_id)
    again_at, note = after_decline(declines=auto.declines + 1, code=code, now=now)
    if again_at is None:
        auto_top_up_end(user=top_up.user, because=note, now=now)
    else:
        AutoTopUp.objects.filter(pk=auto.pk, state=AutoTopUp.State.ON).update(
            declines=auto.declines + 1, next_try_at=again_at, note=note
        )


def _refuse(top_up: TopUp, *, because: str) -> bool:
    refused = TopUp.objects.filter(pk=top_up.pk, state=TopUp.State.CREATED).update(
        state=TopUp.State.REFUSED, because=because[:200], next_try_at=None
    )
    return bool(refused)


def _later(top_up: TopUp, now: datetime) -> None:
    TopUp.objects.filter(pk=top_up.pk, state=TopUp.State.CREATED).update(
        tries=top_up.tries + 1, next_try_at=next_try(tries=top_up.tries + 1, now=now)
    )


def _detach(auto: AutoTopUp, now: datetime) -> bool:
    """True once Stripe has no such card any more."""
    mine = AutoTopUp.objects.filter(pk=auto.pk, detach_id=auto.detach_id)
    try:
        call_make(
            gateway(),
            "payment_method_detach",
            key=f"{auto.detach_id}:detach",
            params={"id": auto.detach_id},
            now=now,
        )
    except StripeUnavailable:
        mine.update(tries=auto.tries + 1, next_try_at=next_try(tries=auto.tries + 1, now=now))
        return False
    except StripeRefused:
        log.info("a removed card was no card of Stripe's any more")
    mine.update(detach_id="", next_try_at=None, tries=0)
    return True


def _is_frozen(user: User) -> bool:
    try:
        wallet_check(user)
    except WalletFrozen:
        return True
    return False
