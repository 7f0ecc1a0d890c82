"""Automatic top-ups: what the buyer agrees to, the card that is saved for it, and when it is on.

Nothing is charged here; `billing.services.auto_top_ups` does that when a wallet runs low.
"""

from datetime import datetime

from django.conf import settings
from django.db import transaction
from django.db.models import F

from accounts.models import User
from billing.domain.amounts import check_amount_between, whole_cents
from billing.domain.auto_top_ups import Terms
from billing.errors import AmountInvalid, ConsentMissing
from billing.gateway.calls import call_make, key_after_refusals
from billing.gateway.client import Json, gateway
from billing.models import AutoTopUp
from billing.services.notices import notice_write
from billing.services.standing import wallet_check
from common.clock import utc_now
from common.money import MICROUSD_PER_USD

LEAST_MICROUSD = 5 * MICROUSD_PER_USD
MOST_MICROUSD = 1_000 * MICROUSD_PER_USD
MOST_A_MONTH_MICROUSD = 10_000 * MICROUSD_PER_USD
State = AutoTopUp.State


def auto_top_up_set(*, user: User, terms: Terms, agreed: bool, now: datetime | None = None) -> AutoTopUp:
    """Switch it on under these terms, or change them; `agreed` is the buyer's clear yes to exactly them.

    Without a saved card Stripe's page is opened to save one (`set_up_url`), and it is on once that is done.
    Raises ConsentMissing, AmountInvalid, WalletFrozen, StripeNotConfigured, StripeRefused, StripeUnavailable.
    """
    now = now or utc_now()
    if agreed is not True:
        raise ConsentMissing("agreed must be true: your card is charged only if you say so.", field="agreed")
    _check_terms(terms)
    wallet_check(user)
    gateway()
    auto = _agree(user, terms, now)
    if auto.state == State.SETTING_UP:
        _open_page(auto, now)
        auto.refresh_from_db()
    return auto


@transaction.atomic
def auto_top_up_stop(*, user: User, forgets_card: bool = False, now: datetime | None = None) -> None:
    """Switch it off, at once and for good; with `forgets_card` the card is removed, here and at Stripe."""
    auto = AutoTopUp.objects.select_for_update().filter(user=user).first()
    if auto is None:
        return
    fields: Json = {"state": State.OFF, "note": "", "set_up_url": "", "next_try_at": None}
    if forgets_card and auto.payment_method_id:
        fields |= {"payment_method_id": "", "card": "", "detach_id": auto.payment_method_id}
        fields["next_try_at"] = now or utc_now()
    AutoTopUp.objects.filter(pk=user.pk).update(**fields)


def auto_top_up_card_saved(session: Json, *, now: datetime) -> bool:
    """Stripe says that its page has saved a card. False if it is not the page that this buyer was last sent to."""
    user_id, number = _reference(session)
    waiting = AutoTopUp.objects.filter(pk=user_id, state=State.SETTING_UP, set_up_number=number)
    if not waiting.exists():
        return False
    saved = gateway().saved_card(session["setup_intent"])
    card = saved.get("card") or {}
    words = f"{str(card.get('brand', 'card')).capitalize()} ending in {card.get('last4', '????')}"
    waiting.update(
        state=State.ON,
        payment_method_id=saved["id"],
        card=words,
        set_up_url="",
        declines=0,
        next_try_at=now,
    )
    return True


def auto_top_up_page_left(session: Json) -> None:
    """Nobody saved a card on the page in time."""
    user_id, number = _reference(session)
    AutoTopUp.objects.filter(pk=user_id, state=State.SETTING_UP, set_up_number=number).update(
        state=State.OFF, set_up_url=""
    )


def auto_top_up_mark(*, user_id: int, now: datetime) -> None:
    """Money has left this wallet: have it looked at. Part of the transaction that took it."""
    AutoTopUp.objects.filter(pk=user_id, state=State.ON, next_try_at=None, declines=0).update(next_try_at=now)


def auto_top_up_ended(*, user_id: int, now: datetime) -> None:
    """An automatic top-up was paid: the card works, and the wallet may still be low."""
    AutoTopUp.objects.filter(pk=user_id).update(declines=0, note="")
    auto_top_up_mark(user_id=user_id, now=now)


@transaction.atomic
def auto_top_up_end(*, user: User, because: str, now: datetime) -> None:
    """Switch it off for a reason that the buyer is told, once, on the page and by e-mail."""
    ended = AutoTopUp.objects.filter(user=user, state=State.ON).update(
        state=State.OFF, note=because, next_try_at=None, declines=0
    )
    if ended:
        words = f"{because}\n\n{settings.PUBLIC_URL}/payments/automatic/"
        notice_write(user=user, subject="Automatic top-up is off", body=words, now=now)


@transaction.atomic
def _agree(user: User, terms: Terms, now: datetime) -> AutoTopUp:
    agreed = {
        "threshold_microusd": terms.threshold_microusd,
        "amount_microusd": terms.amount_microusd,
        "monthly_cap_microusd": terms.monthly_cap_microusd,
        "agreed_at": now,
    }
    AutoTopUp.objects.get_or_create(user=user, defaults=agreed)
    auto = AutoTopUp.objects.select_for_update().get(user=user)
    if auto.payment_method_id:
        fields: Json = {"state": State.ON, "declines": 0, "next_try_at": now}
    else:
        fields = {"state": State.SETTING_UP, "set_up_number": F("set_up_number") + 1, "set_up_url": ""}
    AutoTopUp.objects.filter(pk=user.pk).update(**agreed, **fields, note="")
    auto.refresh_from_db()
    return auto


def _open_page(auto: AutoTopUp, now: datetime) -> None:
    stripe = gateway()
    customer: Json = {"email": auto.user.email}
    if not auto.customer_id:
        key = key_after_refusals(f"customer:{auto.pk}")
        made = call_make(stripe, "customer", key=key, params=customer, now=now)
        AutoTopUp.objects.filter(pk=auto.pk).update(customer_id=made["id"])
        auto.customer_id = made["id"]
    back = f"{settings.PUBLIC_URL}/payments/automatic/"
    reference = f"auto:{auto.pk}:{auto.set_up_number}"
    params = {
        "mode": "setup",
        "customer": auto.customer_id,
        "client_reference_id": reference,
        "payment_method_types": ["card"],
        "success_url": back,
        "cancel_url": back,
    }
    page = call_make(stripe, "checkout_session", key=reference, params=params, now=now)
    AutoTopUp.objects.filter(pk=auto.pk, state=State.SETTING_UP, set_up_number=auto.set_up_number).update(
        set_up_url=page["url"]
    )


def _check_terms(terms: Terms) -> None:
    if terms.threshold_microusd:
        whole_cents(terms.threshold_microusd, field="threshold_microusd")
    if terms.threshold_microusd > MOST_MICROUSD:
        check_amount_between(
            terms.threshold_microusd,
            least_microusd=0,
            most_microusd=MOST_MICROUSD,
            field="threshold_microusd",
        )
    check_amount_between(terms.amount_microusd, least_microusd=LEAST_MICROUSD, most_microusd=MOST_MICROUSD)
    check_amount_between(
        terms.monthly_cap_microusd,
        least_microusd=LEAST_MICROUSD,
        most_microusd=MOST_A_MONTH_MICROUSD,
        field="monthly_cap_microusd",
    )
    if terms.monthly_cap_microusd < terms.amount_microusd:
        raise AmountInvalid(
            "monthly_cap_microusd must be at least one top-up, amount_microusd.", field="monthly_cap_microusd"
        )


def _reference(session: Json) -> tuple[int, int]:
    kind, _, rest = (session.get("client_reference_id") or "").partition(":")
    user_id, _, number = rest.partition(":")
    if kind != "auto" or not (user_id.isdecimal() and number.isdecimal()):
        return 0, 0
    return int(user_id), int(number)
