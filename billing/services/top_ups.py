"""Top-ups: a buyer pays into the wallet on Stripe's hosted page.

The wallet is filled when Stripe says that the payment came, never because a browser came back. Each function is one
step that is stored before Stripe is asked, so that it may be repeated after a crash.
"""

import uuid
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.db import transaction

from accounts.models import User
from billing.domain.amounts import MICROUSD_PER_CENT, check_amount_between, whole_cents
from billing.domain.entries import check_key
from billing.domain.stripe_entries import top_up_entry
from billing.errors import IdempotencyConflict, StripeRefused
from billing.gateway.calls import call_make
from billing.gateway.client import Json, gateway
from billing.models import TopUp
from billing.posting import entries_post
from billing.services.auto_top_up_terms import auto_top_up_end, auto_top_up_ended
from billing.services.standing import wallet_check
from common.clock import utc_now
from common.money import MICROUSD_PER_USD

LEAST_MICROUSD = 5 * MICROUSD_PER_USD
MOST_MICROUSD = 10_000 * MICROUSD_PER_USD
CLIENT_KEY_MAX_CHARS = 80


NOT_CONFIRMED = (
    "Your bank wanted you to confirm a payment, which was not done in time: switch it on again when you like."
)


class TopUpMismatch(Exception):
    """Stripe tells of a payment that is not what was asked for; an operator must look."""


def top_up_create(
    *, user: User, amount_microusd: int, idempotency_key: str, now: datetime | None = None
) -> TopUp:
    """Open Stripe's page for one payment; the same key opens one page, however often it is asked.

    Raises AmountInvalid, KeyInvalid, IdempotencyConflict, WalletFrozen, StripeNotConfigured, StripeUnavailable.
    """
    now = now or utc_now()
    check_amount_between(amount_microusd, least_microusd=LEAST_MICROUSD, most_microusd=MOST_MICROUSD)
    check_key(idempotency_key, max_chars=CLIENT_KEY_MAX_CHARS)
    wallet_check(user)
    stripe = gateway()
    top_up, _ = TopUp.objects.get_or_create(
        user=user,
        idempotency_key=idempotency_key,
        defaults={"amount_microusd": amount_microusd, "created_at": now},
    )
    if top_up.amount_microusd != amount_microusd:
        raise IdempotencyConflict(idempotency_key)
    if top_up.state == TopUp.State.CREATED:
        try:
            page = call_make(
                stripe, "checkout_session", key=f"top_up:{top_up.pk}", params=page_params(top_up), now=now
            )
        except StripeRefused as refusal:
            _move(top_up, TopUp.State.REFUSED, because=refusal.message)
        else:
            _move(top_up, TopUp.State.OPEN, session_id=page["id"], page_url=page["url"])
        top_up.refresh_from_db()
    return top_up


def top_up_paid(session: Json, *, now: datetime) -> None:
    """Stripe says that this Checkout Session was paid: fill the wallet, once. Raises TopUpMismatch."""
    payment = Payment(
        cents=session["amount_total"],
        currency=session["currency"],
        intent_id=session["payment_intent"],
        session_id=session["id"],
    )
    top_up_fill(top_up_id=_top_up_id(session), payment=payment, now=now)


@dataclass(frozen=True, slots=True)
class Payment:
    """What Stripe says was paid for a top-up."""

    cents: int
    currency: str
    intent_id: str
    session_id: str = ""


@transaction.atomic
def top_up_fill(*, top_up_id: uuid.UUID, payment: Payment, now: datetime) -> None:
    """Fill the wallet, once, whoever tells of the payment. Raises TopUpMismatch."""
    top_up = TopUp.objects.select_for_update().filter(pk=top_up_id).first()
    if top_up is None:
        raise TopUpMismatch(f"payment {payment.intent_id} is of no top-up of this site")
    if payment.currency != "usd" or payment.cents * MICROUSD_PER_CENT != top_up.amount_microusd:
        raise TopUpMismatch(f"{payment.cents} {payment.currency} is not what {top_up.pk} asked for")
    entries_post(
        [top_up_entry(top_up_id=top_up.pk, user_id=top_up.user_id, amount_microusd=top_up.amount_microusd)]
    )
    # From any state: money that came is in the wallet, though its page was thought to have expired.
    filled = TopUp.objects.filter(pk=top_up.pk).exclude(state=TopUp.State.PAID)
    told = filled.update(
        state=TopUp.State.PAID,
        session_id=payment.session_id or top_up.session_id,
        payment_intent_id=payment.intent_id,
        paid_at=now,
        page_url="",
        because="",
        next_try_at=None,
    )
    if told and top_up.automatic:
        auto_top_up_ended(user_id=top_up.user_id, now=now)


@transaction.atomic
def top_up_expire(session: Json, *, because: str, now: datetime) -> None:
    """Stripe says that nothing was paid, and nothing will be. An automatic one is not tried again by itself."""
    top_up_id = _top_up_id(session)
    expired = TopUp.objects.filter(pk=top_up_id, state__in=(TopUp.State.CREATED, TopUp.State.OPEN)).update(
        state=TopUp.State.EXPIRED, because=because, page_url="", next_try_at=None
    )
    automatic = TopUp.objects.select_related("user").filter(pk=top_up_id, automatic=True).first()
    if expired and automatic is not None:
        auto_top_up_end(user=automatic.user, because=NOT_CONFIRMED, now=now)


def page_params(top_up: TopUp) -> Json:
    back = f"{settings.PUBLIC_URL}/payments/top-ups/{top_up.pk}/"
    product = {"name": "Nightshift credit"}
    price = {"currency": "usd", "unit_amount": whole_cents(top_up.amount_microusd), "product_data": product}
    return {
        "mode": "payment",
        "client_reference_id": str(top_up.pk),
        "customer_email": top_up.user.email,
        "line_items": [{"price_data": price, "quantity": 1}],
        "payment_intent_data": {"receipt_email": top_up.user.email, "description": "Nightshift credit"},
        "success_url": back,
        "cancel_url": back,
    }


def _move(top_up: TopUp, state: TopUp.State, **fields: str) -> None:
    """Only on from `created`: its payment may have been told of before we learned of the page."""
    TopUp.objects.filter(pk=top_up.pk, state=TopUp.State.CREATED).update(state=state, **fields)


def _top_up_id(session: Json) -> uuid.UUID:
    try:
        return uuid.UUID(session["client_reference_id"])
    except (ValueError, TypeError):
        raise TopUpMismatch(f"session {session['id']} is of no top-up of this site") from None
