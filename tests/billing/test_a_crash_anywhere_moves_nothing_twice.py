"""The process is killed at every step of a top-up, a refund, a settlement and a payout; the next one gets it right.

A story is told with new people for each moment at which it can be killed. Then the site is started anew, whoever
waited for an answer asks again under the same key, and Stripe sends all its events again, from the first. Money is
then where it would be without a crash, and nothing was asked of Stripe twice.
"""

from datetime import timedelta
from functools import partial
from itertools import count

import pytest
from django.core import mail
from django.test import Client

from accounts.models import User
from billing.domain.auto_top_ups import Terms
from billing.due import payments_advance
from billing.models import AutoTopUp, Earning, Payout, TopUp
from billing.selectors import earnings_balance, ledger_differences, wallet_balance
from billing.services import (
    Charge,
    auto_top_up_set,
    hold_charge,
    hold_open,
    hold_release,
    payout_request,
    refund_create,
    top_up_create,
)
from common.clock import utc_now
from tests.billing.cast import USD, buyer, person
from tests.billing.crashing import dies_at
from tests.billing.owners import earner, ready
from tests.fake_stripe import FakeStripe

# With real transactions: what dies in the middle is rolled back, as it would be.
TERMS = Terms(5 * USD, 20 * USD, 40 * USD)
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.timeout(300), pytest.mark.slow]


def started_anew(stripe: FakeStripe, since: int) -> None:
    """The site runs again some hours later, and Stripe sends the story's events once more."""
    payments_advance(now=utc_now() + timedelta(hours=8))
    stripe.deliver(Client(), stripe.world.events[since:])
    payments_advance(now=utc_now() + timedelta(hours=8))


def paid_top_up(stripe: FakeStripe, user: User) -> TopUp:
    top_up = top_up_create(user=user, amount_microusd=20 * USD, idempotency_key="k")
    session = stripe.world.objects[top_up.session_id]
    if session["status"] == "open":
        stripe.world.pay(top_up.session_id)
    stripe.deliver(Client())
    return top_up


def test_a_top_up(stripe, monkeypatch):
    for moment in count():
        bea, since, sessions = person(f"bea-{moment}"), len(stripe.world.events), len(stripe.requests)
        died = dies_at(moment, partial(paid_top_up, stripe, bea), monkeypatch)
        assert wallet_balance(bea) in (0, 20 * USD)
        paid_top_up(stripe, bea)
        started_anew(stripe, since)
        assert wallet_balance(bea) == 20 * USD
        assert TopUp.objects.get(user=bea).state == TopUp.State.PAID
        assert len({request.params["client_reference_id"] for request in stripe.requests[sessions:]}) == 1
        if not died:
            break
    assert moment > 20
    assert len(stripe.world.of("checkout.session")) == moment + 1
    assert ledger_differences() == []


def test_an_automatic_top_up(stripe, monkeypatch):
    for moment in count():
        bea, since = person(f"bea-{moment}"), len(stripe.world.events)

        def topped_up(bea=bea) -> None:
            auto = AutoTopUp.objects.filter(user=bea).first()
            if auto is None or auto.state != AutoTopUp.State.ON:
                auto_top_up_set(user=bea, terms=TERMS, agreed=True)
                mine = stripe.world.objects[AutoTopUp.objects.get(user=bea).customer_id]["id"]
                for page in stripe.world.of("checkout.session"):
                    if page.get("customer") == mine and page["status"] == "open":
                        stripe.world.save_card(page["id"])
                stripe.deliver(Client())
            payments_advance(now=utc_now())
            payments_advance(now=utc_now())
            stripe.deliver(Client())

        died = dies_at(moment, topped_up, monkeypatch)
        assert wallet_balance(bea) in (0, 20 * USD)
        topped_up()
        started_anew(stripe, since)
        assert wallet_balance(bea) == 20 * USD
        assert TopUp.objects.get(user=bea).state == TopUp.State.PAID
        if not died:
            break
    assert moment > 40
    assert len(stripe.world.of("payment_intent")) == moment + 1
    assert ledger_differences() == []


def test_a_payment_that_a_bank_wants_confirmed(stripe, monkeypatch):
    for moment in count():
        bea = person(f"bea-{moment}")
        auto_top_up_set(user=bea, terms=TERMS, agreed=True)
        page = next(made for made in stripe.world.of("checkout.session") if made["status"] == "open")
        stripe.world.save_card(page["id"], "authentication_required")
        stripe.deliver(Client())

        def asked() -> None:
            payments_advance(now=utc_now())
            payments_advance(now=utc_now())

        died = dies_at(moment, asked, monkeypatch)
        asked()
        started_anew(stripe, len(stripe.world.events))
        top_up = TopUp.objects.get(user=bea)
        assert top_up.state == TopUp.State.OPEN
        assert any(f"/payments/top-ups/{top_up.pk}/" in letter.body for letter in mail.outbox)
        stripe.world.pay(top_up.session_id)
        stripe.deliver(Client())
        assert wallet_balance(bea) == 20 * USD
        if not died:
            break
    assert moment > 30
    intents = [made for made in stripe.world.of("payment_intent") if made["status"] == "succeeded"]
    assert len(intents) == moment + 1


def test_a_refund(stripe, monkeypatch):
    for moment in count():
        bea = person(f"bea-{moment}")
        top_up = paid_top_up(stripe, bea)
        since = len(stripe.world.events)

        def refunded(bea=bea, top_up=top_up) -> None:
            refund_create(user=bea, top_up_id=top_up.pk, amount_microusd=5 * USD, idempotency_key="r")

        died = dies_at(moment, refunded, monkeypatch)
        assert wallet_balance(bea) in (15 * USD, 20 * USD)
        assert ledger_differences() == []
        refunded()
        started_anew(stripe, since)
        assert wallet_balance(bea) == 15 * USD
        if not died:
            break
    assert moment > 20
    assert [refund["amount"] for refund in stripe.world.of("refund")] == [500] * (moment + 1)
    assert ledger_differences() == []


def test_a_settlement(monkeypatch):
    for moment in count():
        bea, otto = buyer(f"bea-{moment}", wallet_microusd=100), person(f"otto-{moment}")

        def settled(bea=bea, otto=otto, job=f"job:{moment}") -> None:
            charges = [
                Charge(idempotency_key=f"{job}:{n}", owner_id=otto.pk, amount_microusd=10) for n in range(3)
            ]
            hold_open(user=bea, reference=job, amount_microusd=80)
            hold_charge(reference=job, charges=charges)
            hold_release(reference=job)

        died = dies_at(moment, settled, monkeypatch)
        assert earnings_balance(otto) in (0, 24)
        settled()
        assert (wallet_balance(bea), earnings_balance(otto)) == (70, 24)
        assert Earning.objects.filter(owner=otto).count() == 3
        if not died:
            break
    assert moment > 30
    assert ledger_differences() == []


def test_a_payout(stripe, monkeypatch):
    for moment in count():
        otto, since = ready(stripe, earner(f"otto-{moment}")), len(stripe.world.events)

        def paid_out(otto=otto) -> None:
            payout_request(user=otto, amount_microusd=50 * USD, idempotency_key="k")
            payments_advance(now=utc_now())
            for bank in stripe.world.of("payout"):
                if bank["status"] == "pending":
                    stripe.world.bank_takes(bank["id"])
            stripe.deliver(Client())

        died = dies_at(moment, paid_out, monkeypatch)
        assert earnings_balance(otto) in (30 * USD, 80 * USD)
        assert ledger_differences() == []
        started_anew(stripe, since)
        paid_out()
        started_anew(stripe, since)
        payout = Payout.objects.get(user=otto)
        story = list(payout.steps.values_list("state", flat=True))
        assert story == ["requested", "debited", "transferred", "paid"]
        assert stripe.world.account_cents[payout.stripe_account] == 0
        if not died:
            break
    assert moment > 50
    assert len(stripe.world.of("transfer")) == len(stripe.world.of("payout")) == moment + 1
    assert ledger_differences() == []


def test_a_payout_that_stripe_refuses(stripe, monkeypatch):
    for moment in count():
        otto = ready(stripe, earner(f"otto-{moment}"))
        stripe.world.balance_cents = 0

        def refused(otto=otto) -> None:
            payout_request(user=otto, amount_microusd=50 * USD, idempotency_key="k")
            payments_advance(now=utc_now())

        died = dies_at(moment, refused, monkeypatch)
        refused()
        started_anew(stripe, len(stripe.world.events))
        assert Payout.objects.get(user=otto).state == Payout.State.RETURNED
        assert earnings_balance(otto) == 80 * USD
        if not died:
            break
    assert moment > 30
    assert stripe.world.of("transfer") == []
    assert ledger_differences() == []
