"""The process is killed at every step of each story of money; the next one gets it right.

A story is told with new people for each moment at which it can be killed. Then the site is started anew, whoever
waited for an answer asks again under the same key, and Stripe sends all its events again, from the first. Money is
then where it would be without a crash, and nothing was asked of Stripe twice.
"""

import uuid
from contextlib import suppress
from datetime import timedelta
from functools import partial
from itertools import count

import pytest
from django.core import mail
from django.test import Client

from accounts.models import User
from billing.domain.auto_top_ups import Terms
from billing.due import payments_advance
from billing.errors import AdjustmentNotFound
from billing.models import (
    AutoTopUp,
    BillingNews,
    Dispute,
    Earning,
    OperatorAction,
    Payout,
    Refund,
    TopUp,
    Transfer,
)
from billing.selectors import (
    earnings_balance,
    hold_remaining,
    ledger_differences,
    refundable_microusd,
    wallet_balance,
    wallet_frozen_because,
)
from billing.services import (
    Charge,
    adjustment_approve,
    adjustment_create,
    auto_top_up_set,
    hold_charge,
    hold_open,
    hold_release,
    payout_request,
    refund_create,
    top_up_create,
)
from common.clock import utc_now
from tests.billing.cast import USD, buyer, operator, person, second_operator
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


def test_a_refund_that_the_cards_bank_sends_back(stripe, monkeypatch):
    for moment in count():
        bea = person(f"bea-{moment}")
        top_up = paid_top_up(stripe, bea)
        since = len(stripe.world.events)
        refund = refund_create(user=bea, top_up_id=top_up.pk, amount_microusd=5 * USD, idempotency_key="r")
        stripe.world.bounce_refund(refund.stripe_id)
        died = dies_at(moment, lambda: stripe.deliver(Client()), monkeypatch)
        assert wallet_balance(bea) in (15 * USD, 20 * USD)
        assert ledger_differences() == []
        started_anew(stripe, since)
        refund.refresh_from_db()
        assert (refund.state, wallet_balance(bea)) == (Refund.State.RETURNED, 20 * USD)
        assert refundable_microusd(TopUp.objects.get(user=bea)) == 20 * USD
        if not died:
            break
    assert moment > 20
    assert ledger_differences() == []


# Of the 20 USD paid in, 12 are set aside for a job: a chargeback takes the other 8 from the wallet.
@pytest.mark.parametrize(
    ("end", "status", "left_usd", "news"),
    [
        ("lose_dispute", "lost", 0, ["wallet_frozen"]),
        ("win_dispute", "won", 8, ["wallet_frozen", "wallet_unfrozen"]),
    ],
)
def test_a_dispute(stripe, monkeypatch, end, status, left_usd, news):
    for moment in count():
        bea = person(f"bea-{moment}")
        paid_top_up(stripe, bea)
        top_up = TopUp.objects.get(user=bea)
        hold_open(user=bea, reference=f"job:{moment}", amount_microusd=12 * USD)
        since = len(stripe.world.events)

        def disputed(top_up=top_up) -> None:
            dispute = stripe.world.dispute(top_up.payment_intent_id)
            stripe.deliver(Client())
            getattr(stripe.world, end)(dispute["id"])
            stripe.deliver(Client())

        died = dies_at(moment, disputed, monkeypatch)
        assert wallet_balance(bea) in (0, 8 * USD)
        assert ledger_differences() == []
        (dispute,) = (
            made for made in stripe.world.of("dispute") if made["payment_intent"] == top_up.payment_intent_id
        )
        if dispute["status"] != status:
            getattr(stripe.world, end)(dispute["id"])
        started_anew(stripe, since)
        row = Dispute.objects.get(top_up=top_up)
        assert (row.status, row.from_wallet_microusd) == (status, 8 * USD)
        assert (wallet_balance(bea), hold_remaining(f"job:{moment}")) == (left_usd * USD, 12 * USD)
        told = BillingNews.objects.filter(payload={"user_id": bea.pk}).order_by("pk")
        assert list(told.values_list("kind", flat=True)) == news
        assert bool(wallet_frozen_because(bea)) is (status == "lost")
        if not died:
            break
    assert moment > 40
    assert Transfer.objects.filter(reason=Transfer.Reason.CHARGEBACK).count() == moment + 1
    assert ledger_differences() == []


def test_an_adjustment_that_a_second_operator_approves(monkeypatch, settings):
    settings.ADJUSTMENT_LIMIT_MICROUSD = 50 * USD
    olive, oscar = operator(), second_operator()
    for moment in count():
        bea, number = person(f"bea-{moment}"), uuid.uuid4()

        def adjusted(bea=bea, number=number) -> None:
            adjustment_create(
                adjustment_id=number,
                operator=olive,
                from_key="source:grants",
                to_key=f"wallet:{bea.pk}",
                amount_microusd=60 * USD,
                reason="a result was lost.",
            )
            with suppress(AdjustmentNotFound):  # it is approved already
                adjustment_approve(adjustment_id=number, operator=oscar, reason="checked.", now=utc_now())

        died = dies_at(moment, adjusted, monkeypatch)
        assert wallet_balance(bea) in (0, 60 * USD)
        assert ledger_differences() == []
        adjusted()
        adjusted()
        assert wallet_balance(bea) == 60 * USD
        lines = OperatorAction.objects.filter(subject=f"adjustment:{number}").order_by("pk")
        assert list(lines.values_list("action", "operator")) == [
            ("adjustment_ask", olive.pk),
            ("adjustment_approve", oscar.pk),
        ]
        if not died:
            break
    assert moment > 20
    assert Transfer.objects.filter(reason=Transfer.Reason.ADJUSTMENT).count() == moment + 1
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
