"""What an operator finds at three in the morning: some of everything that moves money, and some of what is stuck."""

from datetime import timedelta

from django.test import Client

from accounts.models import User
from billing.domain.backoff import MAX_TRIES
from billing.due import payments_advance
from billing.models import Payout, Refund, StripeCall, Unmatched
from billing.services import (
    adjustment_create,
    payout_freeze,
    payout_request,
    refund_create,
    top_up_create,
    wallet_freeze_by_hand,
)
from common.clock import utc_now
from tests.billing.cast import USD, operator, person
from tests.billing.owners import earner, ready
from tests.fake_stripe import FakeStripe, Fault


def a_night_of_money(stripe: FakeStripe, client: Client) -> User:
    """Seeds it all; returns the operator who looks. Adjustments above 50 USD have to wait here."""
    olive = operator()
    olive.is_superuser = True
    olive.save()
    _payments(stripe, client)
    _payouts(stripe, client)
    otto = User.objects.get(email="otto@example.org")
    for usd, reason in (
        (7, "A night was lost to our restart."),
        (120, "Two nights were lost to our restart."),
    ):
        adjustment_create(
            operator=olive,
            from_key="source:grants",
            to_key=f"earnings:{otto.pk}",
            amount_microusd=usd * USD + 654_321,
            reason=reason,
        )
    wallet_freeze_by_hand(user=person("mallory"), operator=olive, reason="five cards in an hour.")
    now = utc_now()
    moment = {"moved_at": now - timedelta(hours=9), "found_at": now, "seen_at": now}
    Unmatched.objects.create(kind="charge", stripe_id="txn_1PqR8s", stripe_microusd=23_450_000, **moment)
    Unmatched.objects.create(
        kind="payout_sent",
        ledger_key="payout_sent:0c7a9d52-64b6-4a2e-9b1a-7a3f5a1c2b3d",
        ledger_microusd=-45_420_000,
        stripe_microusd=-45_430_000,
        **moment,
    )
    return olive


def _payments(stripe: FakeStripe, client: Client) -> None:
    """One refunded in part, one whose refund was given up, one that its bank wants back, one in another currency."""
    for name, usd in (("bert", 20), ("bob", 50), ("cleo", 25)):
        top_up = top_up_create(user=person(name), amount_microusd=usd * USD, idempotency_key="k")
        stripe.world.pay(top_up.session_id)
        stripe.deliver(client)
        if name == "bob":
            stripe.faults.append(Fault("/v1/refunds", "lost"))
        if name == "cleo":
            top_up.refresh_from_db()
            stripe.world.dispute(top_up.payment_intent_id)
            stripe.deliver(client)
        else:
            refund_create(
                user=top_up.user, top_up_id=top_up.pk, amount_microusd=7_250_000, idempotency_key="r"
            )
    Refund.objects.filter(state=Refund.State.DEBITED).update(next_try_at=None, tries=MAX_TRIES)
    StripeCall.objects.filter(state=StripeCall.State.BEGUN).update(tries=MAX_TRIES)
    page = top_up_create(user=person("dora"), amount_microusd=30 * USD, idempotency_key="k")
    stripe.world.pay(page.session_id)
    completed = stripe.untold()[-1]
    completed["data"]["object"]["currency"] = "eur"  # which was not asked for
    stripe.deliver(client, [completed])


def _payouts(stripe: FakeStripe, client: Client) -> None:
    """One paid, one refused by the bank, one frozen, and one to which Stripe never answered."""
    for name in ("otto", "olga", "oda", "ole"):
        payout = payout_request(
            user=ready(stripe, earner(name)), amount_microusd=45_670_000, idempotency_key="k"
        )
        if name == "oda":
            payout_freeze(
                payout_id=payout.pk, operator=operator(), reason="the same bank as mallory.", now=utc_now()
            )
        if name == "ole":
            Payout.objects.filter(pk=payout.pk).update(next_try_at=None, tries=MAX_TRIES)
            continue
        payments_advance(now=utc_now())
        payout.refresh_from_db()
        if name == "otto":
            stripe.world.bank_takes(payout.bank_payout_id)
        if name == "olga":
            stripe.world.bank_refuses(payout.bank_payout_id)
        stripe.deliver(client)
