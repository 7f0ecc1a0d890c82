"""A buyer pays on Stripe's page; the wallet is filled when Stripe says so, once."""

import pytest

from billing.errors import (
    AmountInvalid,
    IdempotencyConflict,
    KeyInvalid,
    StripeNotConfigured,
    StripeUnavailable,
    TopUpNotFound,
    WalletFrozen,
)
from billing.models import StripeCall, StripeEvent, TopUp
from billing.selectors import ledger_differences, top_up_of, wallet_balance
from billing.services import top_up_create, wallet_freeze
from tests.billing.cast import USD, person
from tests.fake_stripe import Fault

pytestmark = pytest.mark.django_db
SESSIONS = "/v1/checkout/sessions"


def opened(user, *, usd: int = 20, key: str = "first"):
    return top_up_create(user=user, amount_microusd=usd * USD, idempotency_key=key)


def test_a_paid_page_fills_the_wallet(stripe, client):
    bea = person("bea")
    top_up = opened(bea)
    assert top_up.state == TopUp.State.OPEN
    assert top_up.page_url.startswith("https://checkout.stripe.com/")
    assert wallet_balance(bea) == 0
    stripe.world.pay(top_up.session_id)
    assert stripe.deliver(client) == [200, 200]
    assert wallet_balance(bea) == 20 * USD
    paid = top_up_of(bea, top_up.pk)
    assert (paid.state, paid.page_url) == (TopUp.State.PAID, "")
    assert paid.payment_intent_id.startswith("pi_")
    assert ledger_differences() == []


def test_the_same_key_opens_one_page(stripe):
    bea = person("bea")
    assert opened(bea).pk == opened(bea).pk
    assert len(stripe.requests) == 1
    with pytest.raises(IdempotencyConflict):
        opened(bea, usd=21)


def test_the_same_key_of_two_people_is_two_keys(stripe):
    assert opened(person("bea")).pk != opened(person("bob")).pk


def test_an_event_that_comes_again_fills_nothing(stripe, client):
    bea = person("bea")
    stripe.world.pay(opened(bea).session_id)
    events = stripe.untold()
    assert stripe.deliver(client, events + events + events[::-1]) == [200] * 6
    assert wallet_balance(bea) == 20 * USD
    assert StripeEvent.objects.filter(type="checkout.session.completed").count() == 1


@pytest.mark.parametrize("kind", ["lost", "done", "error", "limited"])
def test_a_request_without_an_answer_is_made_again_under_its_key(stripe, kind):
    bea = person("bea")
    stripe.faults.append(Fault(SESSIONS, kind))
    with pytest.raises(StripeUnavailable):
        opened(bea)
    assert StripeCall.objects.get().state == StripeCall.State.BEGUN
    if kind == "error":
        stripe.forget_keys()  # until then Stripe repeats its 500
    assert opened(bea).state == TopUp.State.OPEN
    assert len(stripe.world.of("checkout.session")) == 1
    assert TopUp.objects.count() == 1


def test_a_page_that_is_not_used_expires_and_moves_nothing(stripe, client):
    bea = person("bea")
    top_up = opened(bea)
    stripe.world.leave(top_up.session_id)
    stripe.deliver(client)
    top_up.refresh_from_db()
    assert (top_up.state, wallet_balance(bea)) == (TopUp.State.EXPIRED, 0)


def test_money_that_came_is_kept_though_its_page_was_thought_to_have_expired(stripe, client):
    bea = person("bea")
    top_up = opened(bea)
    stripe.world.pay(top_up.session_id)
    paid = stripe.untold()
    stripe.world.leave(top_up.session_id)
    stripe.deliver(client)
    stripe.deliver(client, paid)
    assert wallet_balance(bea) == 20 * USD


def test_a_session_that_is_complete_but_unpaid_waits_for_its_money(stripe, client):
    bea = person("bea")
    session = stripe.world.objects[opened(bea).session_id]
    session.update(payment_status="unpaid", status="complete")
    stripe.world.tell("checkout.session.completed", session)
    stripe.deliver(client)
    assert wallet_balance(bea) == 0
    session.update(payment_status="paid", payment_intent="pi_late")
    stripe.world.tell("checkout.session.async_payment_succeeded", session)
    stripe.deliver(client)
    assert wallet_balance(bea) == 20 * USD


@pytest.mark.parametrize("change", [{"amount_total": 1}, {"currency": "eur"}, {"client_reference_id": "x"}])
def test_a_payment_of_something_else_fills_nothing_and_waits_for_an_operator(stripe, client, change):
    bea = person("bea")
    session = stripe.world.objects[opened(bea).session_id]
    session.update(payment_status="paid", payment_intent="pi_odd", **change)
    stripe.world.tell("checkout.session.completed", session)
    assert stripe.deliver(client) == [200]
    event = StripeEvent.objects.get()
    assert (event.state, event.next_try_at) == (StripeEvent.State.FAILED, None)
    assert wallet_balance(bea) == 0


@pytest.mark.parametrize("amount", [0, -5 * USD, 5 * USD + 1, 4 * USD, 10_001 * USD, True, 7.5 * USD, 10**18])
def test_an_amount_that_cannot_be_paid_is_refused_and_nothing_is_stored(stripe, amount):
    with pytest.raises(AmountInvalid) as refused:
        top_up_create(user=person("bea"), amount_microusd=amount, idempotency_key="k")
    assert refused.value.field == "amount_microusd"
    assert (TopUp.objects.count(), stripe.requests) == (0, [])


@pytest.mark.parametrize("key", ["", "x" * 81])
def test_a_key_must_be_there_and_short(stripe, key):
    with pytest.raises(KeyInvalid):
        opened(person("bea"), key=key)


def test_a_frozen_wallet_takes_no_top_up(stripe):
    bea = person("bea")
    wallet_freeze(user=bea, because="asked by the bank.")
    with pytest.raises(WalletFrozen, match="asked by the bank"):
        opened(bea)


def test_a_site_without_a_key_says_so(settings):
    settings.STRIPE_SECRET_KEY = ""
    with pytest.raises(StripeNotConfigured, match="NIGHTSHIFT_STRIPE_SECRET_KEY"):
        opened(person("bea"))
    assert TopUp.objects.count() == 0


def test_another_persons_top_up_is_not_found(stripe):
    top_up = opened(person("bea"))
    with pytest.raises(TopUpNotFound):
        top_up_of(person("bob"), top_up.pk)
