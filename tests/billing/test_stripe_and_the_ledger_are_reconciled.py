"""Every movement of the balance at Stripe has its transfer in the ledger, and the other way round, or is listed."""

from datetime import UTC, datetime, timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from billing.domain.stripe_entries import top_up_entry
from billing.due import payments_advance
from billing.gateway.client import gateway
from billing.models import StripeEvent
from billing.posting import entries_post
from billing.reconciliation import EARLIER, Reconciliation, reconcile
from billing.services import payout_request, refund_create, top_up_create
from common.clock import utc_now
from tests.billing.cast import USD, operator, person
from tests.billing.owners import earner, ready
from tests.fake_stripe import world

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _today(monkeypatch):
    """The fake Stripe's clock shows this morning, so that nothing is too new to be compared."""
    monkeypatch.setattr(world, "START", int((utc_now() - timedelta(hours=5)).timestamp()))


def compared() -> Reconciliation:
    now = utc_now()
    since = now - timedelta(days=1)
    return reconcile(gateway().balance_transactions(since=since - EARLIER), since=since, now=now)


def everything(stripe, client) -> None:
    """A top-up, a refund that bounced, a chargeback that was won, a reversed payout, and one that went through."""
    bea = person("bea")
    top_up = top_up_create(user=bea, amount_microusd=20 * USD, idempotency_key="k")
    stripe.world.pay(top_up.session_id)
    stripe.deliver(client)
    refund = refund_create(user=bea, top_up_id=top_up.pk, amount_microusd=5 * USD, idempotency_key="r")
    stripe.world.bounce_refund(refund.stripe_id)
    stripe.deliver(client)
    top_up.refresh_from_db()
    dispute = stripe.world.dispute(top_up.payment_intent_id)
    stripe.world.win_dispute(dispute["id"])
    otto = ready(stripe, earner())
    first = payout_request(user=otto, amount_microusd=50 * USD, idempotency_key="k")
    payments_advance(now=utc_now())
    first.refresh_from_db()
    stripe.world.reverse(first.transfer_id)
    payout_request(user=otto, amount_microusd=10 * USD, idempotency_key="second")
    payments_advance(now=utc_now())
    stripe.deliver(client)


def test_all_that_moved_agrees(stripe, client):
    everything(stripe, client)
    result = compared()
    assert result.mismatches == ()
    assert (result.paired, result.outside) == (8, 0)


def test_a_payment_that_the_books_never_heard_of_is_listed(stripe):
    top_up = top_up_create(user=person("bea"), amount_microusd=20 * USD, idempotency_key="k")
    stripe.world.pay(top_up.session_id)
    (mismatch,) = compared().mismatches
    assert (mismatch.kind, mismatch.stripe_microusd, mismatch.ledger_microusd) == ("charge", 20 * USD, None)


def test_money_in_the_books_that_stripe_never_had_is_listed(stripe):
    bea = person("bea")
    top_up = top_up_create(user=bea, amount_microusd=20 * USD, idempotency_key="k")
    entries_post([top_up_entry(top_up_id=top_up.pk, user_id=bea.pk, amount_microusd=20 * USD)])
    (mismatch,) = compared().mismatches
    assert (mismatch.stripe_microusd, mismatch.ledger_microusd) == (None, 20 * USD)


def test_an_amount_that_differs_is_listed_with_both_sides(stripe, client):
    everything(stripe, client)
    charge = next(made for made in stripe.world.of("balance_transaction") if made["type"] == "charge")
    charge["amount"] += 1
    (mismatch,) = compared().mismatches
    assert (mismatch.stripe_microusd, mismatch.ledger_microusd) == (20 * USD + 10_000, 20 * USD)


def test_what_stripe_moves_for_itself_is_outside_the_books(stripe):
    stripe.world.moved("stripe_fee", -30, stripe.world.new("fee", "fee"))
    assert (compared().outside, compared().mismatches) == (1, ())


def test_what_came_a_moment_ago_may_still_be_on_its_way_to_the_books(stripe, monkeypatch):
    monkeypatch.setattr(world, "START", int(utc_now().timestamp()))
    top_up = top_up_create(user=person("bea"), amount_microusd=20 * USD, idempotency_key="k")
    stripe.world.pay(top_up.session_id)
    assert compared().mismatches == ()


def test_many_movements_come_in_pages(stripe):
    for _ in range(230):
        stripe.world.moved("stripe_fee", -1, stripe.world.new("fee", "fee"))
    since = datetime(2020, 1, 1, tzinfo=UTC)
    assert len(list(gateway().balance_transactions(since=since))) == 230


def test_the_command_prints_both_sides_and_exits_with_1(stripe, client):
    everything(stripe, client)
    out = StringIO()
    call_command("reconcile_stripe", stdout=out)
    assert "8 movements agree" in out.getvalue()
    session = top_up_create(user=person("bob"), amount_microusd=30 * USD, idempotency_key="k").session_id
    stripe.world.pay(session)
    with pytest.raises(CommandError) as failed:
        call_command("reconcile_stripe", stdout=out)
    assert failed.value.returncode == 1
    assert "$30.00" in out.getvalue()


def test_without_a_key_the_command_says_what_to_set(settings):
    settings.STRIPE_SECRET_KEY = ""
    with pytest.raises(CommandError, match="NIGHTSHIFT_STRIPE_SECRET_KEY"):
        call_command("reconcile_stripe")


def test_an_operator_replays_an_event_that_had_failed(stripe, client):
    bea = person("bea")
    top_up = top_up_create(user=bea, amount_microusd=20 * USD, idempotency_key="k")
    session = stripe.world.pay(top_up.session_id)
    stripe.untold()
    session["currency"] = "eur"
    stripe.world.tell("checkout.session.completed", session)
    stripe.deliver(client)
    event = StripeEvent.objects.get()
    assert event.state == StripeEvent.State.FAILED
    StripeEvent.objects.update(body=event.body.replace('"eur"', '"usd"'))
    olga = operator()
    olga.is_superuser = True
    olga.save()
    client.force_login(olga)
    replay = {"action": "replay", "_selected_action": [event.pk], "reason": "the currency was mistyped."}
    for _ in range(2):
        client.post("/admin/billing/stripeevent/", replay, follow=True)
    event.refresh_from_db()
    assert event.state == StripeEvent.State.HANDLED
    top_up.refresh_from_db()
    assert top_up.state == "paid"
