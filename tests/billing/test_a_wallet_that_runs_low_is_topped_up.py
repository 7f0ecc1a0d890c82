"""Automatic top-ups: after a clear yes, one payment at a time, within the month's cap, and never against a no."""

import uuid
from datetime import UTC, datetime, timedelta

import pytest
from django.core import mail
from django.db import IntegrityError, transaction
from hypothesis import given
from hypothesis import strategies as st
from rest_framework.test import APIClient

from accounts.models import User
from accounts.services import api_token_create
from billing.domain.auto_top_ups import PAUSES, Terms, after_decline, month_after, month_of, verdict
from billing.due import payments_advance
from billing.errors import AmountInvalid, ConsentMissing, WalletFrozen
from billing.models import AutoTopUp, TopUp
from billing.selectors import ledger_differences, wallet_balance
from billing.services import (
    auto_top_up_set,
    auto_top_up_stop,
    hold_open,
    refund_create,
    wallet_freeze,
)
from common.clock import utc_now
from tests.billing.cast import USD, buyer, person
from tests.fake_stripe import FakeStripe, Fault

pytestmark = pytest.mark.django_db
TERMS = Terms(10 * USD, 25 * USD, 100 * USD)
INTENTS = "/v1/payment_intents"


def agreed(user: User, terms: Terms = TERMS) -> AutoTopUp:
    return auto_top_up_set(user=user, terms=terms, agreed=True)


def switched_on(stripe: FakeStripe, client, user: User, *, behaves: str = "ok", terms: Terms = TERMS) -> User:
    """The buyer has said yes and saved a card."""
    agreed(user, terms)
    session = next(made for made in stripe.world.of("checkout.session") if made["status"] == "open")
    stripe.world.save_card(session["id"], behaves)
    stripe.deliver(client)
    return user


def work(hours: float = 0) -> None:
    for _ in range(3):  # look, charge, tell
        payments_advance(now=utc_now() + timedelta(hours=hours))


def spend(user: User, usd: int) -> None:
    hold_open(user=user, reference=f"job:{uuid.uuid4()}", amount_microusd=usd * USD)


def auto_of(user: User) -> AutoTopUp:
    return AutoTopUp.objects.get(user=user)


def test_spending_under_the_threshold_charges_the_saved_card_once(stripe, client):
    bea = switched_on(stripe, client, buyer(wallet_microusd=30 * USD))
    work()
    assert TopUp.objects.count() == 0
    spend(bea, 25)
    work()
    stripe.deliver(client)
    work()
    assert wallet_balance(bea) == 30 * USD
    (intent,) = stripe.world.of("payment_intent")
    top_up = TopUp.objects.get()
    assert (top_up.state, top_up.payment_intent_id, top_up.automatic) == ("paid", intent["id"], True)
    assert (auto_of(bea).card, ledger_differences()) == ("Visa ending in 4242", [])


def test_nothing_is_charged_before_a_card_is_saved_or_without_a_yes(stripe):
    bea = person("bea")
    with pytest.raises(ConsentMissing) as refused:
        auto_top_up_set(user=bea, terms=TERMS, agreed=False)
    assert refused.value.field == "agreed"
    assert AutoTopUp.objects.count() == 0
    assert agreed(bea).set_up_url.startswith("https://checkout.stripe.com/")
    work()
    assert stripe.world.of("payment_intent") == []


def test_what_goes_back_to_the_card_is_not_charged_to_it_again(stripe, client):
    bea = switched_on(stripe, client, person("bea"))
    work()
    top_up = TopUp.objects.get()
    refund_create(user=bea, top_up_id=top_up.pk, amount_microusd=20 * USD, idempotency_key="r")
    work()
    assert (TopUp.objects.count(), wallet_balance(bea)) == (1, 5 * USD)


def test_a_month_has_its_cap(stripe, client):
    bea = switched_on(stripe, client, person("bea"), terms=Terms(10 * USD, 25 * USD, 60 * USD))
    for _ in range(4):
        work()
        if wallet_balance(bea) >= 22 * USD:
            spend(bea, 22)
        work()
    assert TopUp.objects.filter(state="paid").count() == 2
    assert "cap is reached" in auto_of(bea).note
    assert auto_of(bea).next_try_at == month_after(utc_now())


@pytest.mark.parametrize("kind", ["lost", "done", "limited"])
def test_a_lost_answer_charges_nothing_twice(stripe, client, kind):
    bea = switched_on(stripe, client, person("bea"))
    stripe.faults.append(Fault(INTENTS, kind))
    work()
    assert TopUp.objects.get().state == TopUp.State.CREATED
    work(hours=1)
    assert (len(stripe.world.of("payment_intent")), wallet_balance(bea)) == (1, 25 * USD)


def test_an_answer_that_was_lost_for_days_is_found_again(stripe, client):
    bea = switched_on(stripe, client, person("bea"))
    stripe.faults.append(Fault(INTENTS, "done"))
    work()
    stripe.forget_keys()
    work(hours=48)
    assert (len(stripe.world.of("payment_intent")), wallet_balance(bea)) == (1, 25 * USD)


def test_a_bank_that_wants_the_buyer_gets_an_e_mail_sent_and_no_second_request(stripe, client):
    bea = switched_on(stripe, client, person("bea"), behaves="authentication_required")
    work()
    work(hours=100)
    top_up = TopUp.objects.get()
    assert (top_up.state, wallet_balance(bea)) == (TopUp.State.OPEN, 0)
    (letter,) = mail.outbox
    assert f"/payments/top-ups/{top_up.pk}/" in letter.body
    assert letter.to == ["bea@example.org"]
    assert [intent["status"] for intent in stripe.world.of("payment_intent")] == ["canceled"]
    client.force_login(bea)
    assert top_up.page_url in client.get(f"/payments/top-ups/{top_up.pk}/").content.decode()
    stripe.world.pay(top_up.session_id)
    stripe.deliver(client)
    assert (wallet_balance(bea), auto_of(bea).state) == (25 * USD, "on")


def test_a_confirmation_that_is_not_given_switches_it_off(stripe, client):
    bea = switched_on(stripe, client, person("bea"), behaves="authentication_required")
    work()
    stripe.world.leave(TopUp.objects.get().session_id)
    stripe.deliver(client)
    work(hours=200)
    assert (auto_of(bea).state, wallet_balance(bea), TopUp.objects.count()) == ("off", 0, 1)
    assert "was not done in time" in auto_of(bea).note
    assert [letter.subject for letter in mail.outbox] == [
        "Nightshift: Please confirm a payment",
        "Nightshift: Automatic top-up is off",
    ]


def test_declines_are_tried_again_later_and_then_no_more(stripe, client):
    bea = switched_on(stripe, client, person("bea"), behaves="insufficient_funds")
    work()
    spend_is_no_way_around = auto_of(bea).next_try_at
    assert spend_is_no_way_around is not None
    work(hours=1)
    assert TopUp.objects.count() == 1
    for hours in (5, 30, 100, 200):
        work(hours=hours)
    assert [top_up.state for top_up in TopUp.objects.all()] == ["refused"] * (len(PAUSES) + 1)
    assert (auto_of(bea).state, wallet_balance(bea), len(mail.outbox)) == ("off", 0, 1)
    assert "declined 3 times in a row" in auto_of(bea).note


def test_a_stolen_card_is_not_tried_again(stripe, client):
    bea = switched_on(stripe, client, person("bea"), behaves="stolen_card")
    work()
    work(hours=100)
    assert (TopUp.objects.count(), auto_of(bea).state) == (1, "off")


def test_a_payment_that_takes_its_time_is_told_of_by_an_event(stripe, client):
    bea = switched_on(stripe, client, person("bea"), behaves="processing")
    work()
    work(hours=100)
    (intent,) = stripe.world.of("payment_intent")
    assert (TopUp.objects.get().state, wallet_balance(bea)) == ("created", 0)
    stripe.world.charged(intent)
    stripe.deliver(client)
    assert wallet_balance(bea) == 25 * USD


def test_a_payment_that_fails_late_is_a_decline(stripe, client):
    bea = switched_on(stripe, client, person("bea"), behaves="processing")
    work()
    (intent,) = stripe.world.of("payment_intent")
    intent.update(status="requires_payment_method", last_payment_error={"code": "card_declined"})
    stripe.world.tell("payment_intent.payment_failed", intent)
    stripe.deliver(client)
    assert (TopUp.objects.get().state, auto_of(bea).declines) == ("refused", 1)


def test_switched_off_is_off_even_for_what_was_begun_and_not_asked_yet(stripe, client):
    bea = switched_on(stripe, client, person("bea"))
    TopUp.objects.create(
        user=bea,
        automatic=True,
        idempotency_key="auto:1",
        amount_microusd=25 * USD,
        created_at=utc_now(),
        next_try_at=utc_now(),
    )
    auto_top_up_stop(user=bea)
    work()
    assert (TopUp.objects.get().state, stripe.world.of("payment_intent")) == ("refused", [])


def test_a_removed_card_is_removed_at_stripe_too(stripe, client):
    bea = switched_on(stripe, client, buyer(wallet_microusd=30 * USD))
    stripe.faults.append(Fault(f"/v1/payment_methods/{auto_of(bea).payment_method_id}/detach", "lost"))
    auto_top_up_stop(user=bea, forgets_card=True)
    assert (auto_of(bea).state, auto_of(bea).payment_method_id, auto_of(bea).card) == ("off", "", "")
    work()
    work(hours=2)
    assert stripe.world.of("payment_method")[0]["customer"] is None
    assert auto_of(bea).detach_id == ""


def test_a_frozen_wallet_is_not_topped_up(stripe, client):
    bea = switched_on(stripe, client, person("bea"))
    wallet_freeze(user=bea, because="asked by the bank.")
    work()
    assert TopUp.objects.count() == 0
    with pytest.raises(WalletFrozen):
        agreed(bea)


def test_the_database_refuses_a_second_live_one(stripe, client):
    bea = switched_on(stripe, client, person("bea"), behaves="processing")
    work()
    with pytest.raises(IntegrityError), transaction.atomic():
        TopUp.objects.create(
            user=bea, automatic=True, idempotency_key="x", amount_microusd=USD, created_at=utc_now()
        )
    with pytest.raises(IntegrityError, match="auto_top_up_that_is_on_has_a_card"), transaction.atomic():
        AutoTopUp.objects.update(payment_method_id="")


def test_a_page_that_is_left_is_closed(stripe, client):
    bea = person("bea")
    agreed(bea)
    stripe.world.leave(stripe.world.of("checkout.session")[0]["id"])
    stripe.deliver(client)
    assert (auto_of(bea).state, auto_of(bea).set_up_url) == (AutoTopUp.State.OFF, "")


def test_a_page_of_an_earlier_yes_saves_nothing(stripe, client):
    bea = person("bea")
    agreed(bea)
    first = stripe.world.of("checkout.session")[0]
    agreed(bea)
    stripe.world.save_card(first["id"])
    stripe.deliver(client)
    assert auto_of(bea).state == AutoTopUp.State.SETTING_UP


@pytest.mark.parametrize(
    ("terms", "field"),
    [
        (Terms(-1, 25 * USD, 100 * USD), "threshold_microusd"),
        (Terms(1, 25 * USD, 100 * USD), "threshold_microusd"),
        (Terms(2_000 * USD, 25 * USD, 100 * USD), "threshold_microusd"),
        (Terms(0, 0, 100 * USD), "amount_microusd"),
        (Terms(0, 1_001 * USD, 10_000 * USD), "amount_microusd"),
        (Terms(0, 25 * USD, 20 * USD), "monthly_cap_microusd"),
        (Terms(0, 25 * USD, 10_001 * USD), "monthly_cap_microusd"),
    ],
)
def test_terms_that_cannot_be_are_refused(stripe, terms, field):
    with pytest.raises(AmountInvalid) as refused:
        agreed(person("bea"), terms)
    assert (refused.value.field, AutoTopUp.objects.count()) == (field, 0)


amounts = st.integers(0, 200)
moments = st.integers(1_700_000_000, 1_900_000_000).map(lambda s: datetime.fromtimestamp(s, tz=UTC))


@given(amounts, st.integers(1, 200), amounts, amounts, amounts, moments)
def test_no_verdict_ever_breaks_the_cap_or_fills_a_full_wallet(threshold, amount, cap, balance, spent, now):
    found = verdict(Terms(threshold, amount, cap), balance_microusd=balance, spent_microusd=spent, now=now)
    if found.tops_up:
        assert balance < threshold
        assert spent + amount <= cap
    if found.again_at is not None:
        assert found.again_at > now
        assert month_of(found.again_at) == found.again_at


@given(st.integers(1, 9), st.sampled_from(["", "insufficient_funds", "lost_card"]), moments)
def test_after_some_declines_it_ends(declines, code, now):
    again_at, words = after_decline(declines=declines, code=code, now=now)
    assert words
    assert (again_at is None) == (declines > len(PAUSES) or code == "lost_card")


def test_the_page_asks_for_a_yes_and_shows_the_way_out(stripe, client):
    bea = person("bea")
    client.force_login(bea)
    form = {"threshold": "10", "amount": "25", "cap": "100"}
    assert "clear yes" in client.post("/payments/automatic/", form).content.decode()
    away = client.post("/payments/automatic/", form | {"agreed": "on"})
    assert away["Location"].startswith("https://checkout.stripe.com/")
    stripe.world.save_card(stripe.world.of("checkout.session")[0]["id"])
    stripe.deliver(client)
    assert "Visa ending in 4242 is charged $25.00" in client.get("/payments/automatic/").content.decode()
    client.post("/payments/automatic/", form | {"amount": "30", "agreed": "on"})
    assert auto_of(bea).amount_microusd == 30 * USD
    page = client.post("/payments/automatic/stop/", {"card": "remove"}, follow=True).content.decode()
    assert "Your card is removed" in page
    assert auto_of(bea).state == "off"


def test_programs_switch_it_on_with_the_right_scope(stripe):
    bea, api = person("bea"), APIClient()

    def as_token(*scopes: str) -> APIClient:
        _, plain = api_token_create(user=bea, name="t", scopes=list(scopes))
        api.credentials(HTTP_AUTHORIZATION=f"Bearer {plain}")
        return api

    body = {"threshold_microusd": 10 * USD, "amount_microusd": 25 * USD, "monthly_cap_microusd": 100 * USD}
    path = "/api/wallet/auto-top-up/"
    assert as_token("money:read").put(path, body | {"agreed": True}).status_code == 403
    refused = as_token("money:write").put(path, body | {"agreed": False})
    assert (refused.status_code, refused.data["code"]) == (400, "consent_missing")
    made = api.put(path, body | {"agreed": True})
    assert (made.status_code, made.data["state"]) == (200, "setting_up")
    assert made.data["set_up_url"]
    assert as_token("money:read").get(path).data["amount_microusd"] == 25 * USD
    assert as_token("money:write").delete(path).status_code == 204
