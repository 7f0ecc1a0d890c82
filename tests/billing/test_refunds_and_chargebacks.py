"""Money that goes back to a card: unspent, by refund; or taken by the bank, which freezes the wallet."""

from datetime import timedelta

import pytest

from billing.due import payments_advance
from billing.errors import (
    AmountInvalid,
    IdempotencyConflict,
    InsufficientFunds,
    StripeNotConfigured,
    TopUpNotFound,
    TopUpNotRefundable,
    WalletFrozen,
)
from billing.models import BillingNews, Dispute, OperatorAction, Refund
from billing.selectors import (
    ledger_differences,
    refundable_microusd,
    top_up_of,
    wallet_balance,
    wallet_frozen_because,
)
from billing.services import (
    hold_open,
    refund_create,
    top_up_create,
    wallet_freeze_by_hand,
    wallet_unfreeze,
)
from billing.services.disputes import dispute_note
from common.clock import utc_now
from tests.billing.cast import USD, operator, person
from tests.fake_stripe import Fault

pytestmark = pytest.mark.django_db


@pytest.fixture
def bea(stripe, client):
    """She has paid in 20 USD."""
    user = person("bea")
    top_up = top_up_create(user=user, amount_microusd=20 * USD, idempotency_key="k")
    stripe.world.pay(top_up.session_id)
    stripe.deliver(client)
    return user


def refunded(user, *, usd: int = 5, key: str = "r") -> Refund:
    top_up = user.top_ups.get()
    return refund_create(user=user, top_up_id=top_up.pk, amount_microusd=usd * USD, idempotency_key=key)


def test_what_is_unspent_goes_back_to_the_card(stripe, bea):
    refund = refunded(bea)
    assert (refund.state, wallet_balance(bea)) == (Refund.State.SENT, 15 * USD)
    assert [made["amount"] for made in stripe.world.of("refund")] == [500]
    assert refundable_microusd(bea.top_ups.get()) == 15 * USD
    assert ledger_differences() == []


def test_the_same_key_refunds_once(stripe, bea):
    assert refunded(bea).pk == refunded(bea).pk
    assert wallet_balance(bea) == 15 * USD
    with pytest.raises(IdempotencyConflict):
        refunded(bea, usd=6)


def test_what_is_spent_or_set_aside_cannot_be_refunded(stripe, bea):
    hold_open(user=bea, reference="job:1", amount_microusd=18 * USD)
    assert refundable_microusd(bea.top_ups.get()) == 2 * USD
    with pytest.raises(InsufficientFunds):
        refunded(bea)
    assert stripe.world.of("refund") == []


def test_no_more_than_the_top_up_can_be_refunded(stripe, bea):
    refunded(bea, usd=15)
    with pytest.raises(TopUpNotRefundable, match=r"At most \$5.00"):
        refunded(bea, usd=6, key="second")


def test_a_page_that_was_not_paid_has_nothing_to_refund(stripe):
    bob = person("bob")
    top_up_create(user=bob, amount_microusd=20 * USD, idempotency_key="k")
    with pytest.raises(TopUpNotRefundable):
        refunded(bob)


@pytest.mark.parametrize("amount", [0, -1, USD + 1, True])
def test_an_amount_that_no_card_knows_is_refused(stripe, bea, amount):
    with pytest.raises(AmountInvalid):
        refund_create(user=bea, top_up_id=bea.top_ups.get().pk, amount_microusd=amount, idempotency_key="r")


def test_another_persons_top_up_is_not_found(stripe, bea):
    with pytest.raises(TopUpNotFound):
        refund_create(
            user=person("bob"), top_up_id=bea.top_ups.get().pk, amount_microusd=USD, idempotency_key="r"
        )
    with pytest.raises(TopUpNotFound):
        top_up_of(person("carol"), bea.top_ups.get().pk)


@pytest.mark.parametrize("kind", ["lost", "done", "limited"])
def test_a_refund_without_an_answer_is_made_once_later(stripe, bea, kind):
    stripe.faults.append(Fault("/v1/refunds", kind))
    refund = refunded(bea)
    assert (refund.state, wallet_balance(bea)) == (Refund.State.DEBITED, 15 * USD)
    assert ledger_differences() == []
    payments_advance(now=utc_now() + timedelta(minutes=5))
    refund.refresh_from_db()
    assert refund.state == Refund.State.SENT
    assert len(stripe.world.of("refund")) == 1
    assert ledger_differences() == []


def test_a_refund_that_stripe_refuses_returns_to_the_wallet(stripe, bea):
    stripe.world.new("dp", "dispute", payment_intent=bea.top_ups.get().payment_intent_id)
    refund = refunded(bea)
    assert (refund.state, wallet_balance(bea)) == (Refund.State.RETURNED, 20 * USD)
    assert "charge_disputed" in refund.because
    assert bea.top_ups.get().refunded_microusd == 0
    assert ledger_differences() == []


def test_a_refund_that_the_cards_bank_refuses_returns_to_the_wallet_once(stripe, client, bea):
    refund = refunded(bea)
    stripe.world.bounce_refund(refund.stripe_id)
    stripe.deliver(client)
    refund.refresh_from_db()
    assert (refund.state, wallet_balance(bea)) == (Refund.State.RETURNED, 20 * USD)
    assert ledger_differences() == []


def test_without_stripe_nothing_is_debited(bea, settings):
    settings.STRIPE_SECRET_KEY = ""
    with pytest.raises(StripeNotConfigured):
        refunded(bea)
    assert wallet_balance(bea) == 20 * USD


def disputed(stripe, client, user) -> Dispute:
    stripe.world.dispute(user.top_ups.get().payment_intent_id)
    stripe.deliver(client)
    return Dispute.objects.get()


def test_a_chargeback_takes_the_money_freezes_the_wallet_and_is_told_upwards_once(stripe, client, bea):
    dispute = disputed(stripe, client, bea)
    stripe.deliver(client, stripe.world.events)
    assert (wallet_balance(bea), dispute.from_wallet_microusd) == (0, 20 * USD)
    assert list(BillingNews.objects.values_list("kind", "payload")) == [
        ("wallet_frozen", {"user_id": bea.pk})
    ]
    assert ledger_differences() == []
    with pytest.raises(WalletFrozen, match="disputed"):
        hold_open(user=bea, reference="job:1", amount_microusd=1)
    with pytest.raises((WalletFrozen, TopUpNotRefundable)):
        refunded(bea)


def test_what_the_wallet_no_longer_has_the_platform_stands_for(stripe, client, bea):
    hold_open(user=bea, reference="job:1", amount_microusd=12 * USD)
    dispute = disputed(stripe, client, bea)
    assert (wallet_balance(bea), dispute.from_wallet_microusd) == (0, 8 * USD)
    assert ledger_differences() == []


@pytest.mark.parametrize("backwards", [False, True])
def test_a_chargeback_that_is_won_gives_each_part_back(stripe, client, bea, backwards):
    hold_open(user=bea, reference="job:1", amount_microusd=12 * USD)
    dispute = stripe.world.dispute(bea.top_ups.get().payment_intent_id)
    stripe.world.win_dispute(dispute["id"])
    events = stripe.untold()
    stripe.deliver(client, events[::-1] if backwards else events)
    payments_advance(now=utc_now() + timedelta(minutes=5))
    payments_advance(now=utc_now() + timedelta(minutes=10))
    assert wallet_balance(bea) == 8 * USD
    assert Dispute.objects.get().status == "won"
    assert ledger_differences() == []


def test_an_operator_lifts_the_freeze_and_says_why(stripe, client, bea):
    disputed(stripe, client, bea)
    wallet_unfreeze(user=bea, operator=operator(), reason="the bank agreed with us.")
    wallet_unfreeze(user=bea, operator=operator(), reason="again.")
    assert list(OperatorAction.objects.values_list("action", "reason")) == [
        ("wallet_unfreeze", "the bank agreed with us.")
    ]
    assert BillingNews.objects.filter(kind="wallet_unfrozen").count() == 1
    with pytest.raises(InsufficientFunds):
        hold_open(user=bea, reference="job:1", amount_microusd=1)


def test_a_chargeback_that_is_won_lifts_its_freeze_and_tells_so(stripe, client, bea):
    dispute = disputed(stripe, client, bea)
    stripe.world.win_dispute(dispute.pk)
    stripe.deliver(client)
    payments_advance(now=utc_now() + timedelta(minutes=5))
    assert wallet_frozen_because(bea) == ""
    assert list(BillingNews.objects.values_list("kind", flat=True)) == ["wallet_frozen", "wallet_unfrozen"]
    hold_open(user=bea, reference="job:1", amount_microusd=USD)


def test_a_freeze_by_an_operator_outlasts_a_chargeback_that_is_won(stripe, client, bea):
    wallet_freeze_by_hand(user=bea, operator=operator(), reason="a stolen card.")
    dispute = disputed(stripe, client, bea)
    stripe.world.win_dispute(dispute.pk)
    stripe.deliver(client)
    assert wallet_frozen_because(bea) == "a stolen card."


def test_old_word_of_a_dispute_does_not_freeze_again_what_an_operator_has_lifted(stripe, client, bea):
    disputed(stripe, client, bea)
    wallet_unfreeze(user=bea, operator=operator(), reason="the bank agreed with us.")
    payment = bea.top_ups.get().payment_intent_id
    dispute_note(
        {"id": Dispute.objects.get().pk, "payment_intent": payment, "status": "under_review", "amount": 2000}
    )
    assert wallet_frozen_because(bea) == ""
