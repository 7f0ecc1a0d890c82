"""A payout is debited, transferred and paid; or it ends in one state, with one sentence, its money in one place."""

from datetime import timedelta

import pytest

from billing.domain.backoff import MAX_TRIES
from billing.domain.payout_states import TRANSITIONS
from billing.due import payments_advance
from billing.errors import (
    AmountInvalid,
    EarningsImmature,
    IdempotencyConflict,
    PayoutAccountMissing,
    PayoutAccountUnready,
    PayoutNotFound,
    PayoutsFrozen,
)
from billing.models import Payout, StripeCall
from billing.selectors import (
    earnings_balance,
    earnings_balances,
    fees_balance,
    ledger_differences,
    payout_of,
)
from billing.services import (
    payout_account_sync,
    payout_advance,
    payout_bank_retry,
    payout_request,
    payouts_freeze,
    payouts_unfreeze,
)
from common.clock import utc_now
from tests.billing.cast import USD, operator, person
from tests.billing.owners import earn, earner, ready, states
from tests.fake_stripe import Fault

pytestmark = pytest.mark.django_db
FEE = 250_000


def asked(owner, *, usd: int = 50, key: str = "first") -> Payout:
    return payout_request(user=owner, amount_microusd=usd * USD, idempotency_key=key)


def advanced(payout: Payout, *, later: timedelta = timedelta()) -> Payout:
    payments_advance(now=utc_now() + later)
    payout.refresh_from_db()
    return payout


@pytest.fixture
def otto(stripe):
    return ready(stripe, earner())


def test_a_payout_is_debited_transferred_and_paid(stripe, client, otto):
    payout = asked(otto)
    assert payout.state == Payout.State.DEBITED
    assert earnings_balance(otto) == 30 * USD
    assert advanced(payout).state == Payout.State.TRANSFERRED
    (transfer,) = stripe.world.of("transfer")
    assert transfer["amount"] == 4_975  # 50 USD less our 25 cents
    (bank,) = stripe.world.of("payout")
    assert (bank["amount"], bank["account"]) == (4_975, payout.stripe_account)
    stripe.world.bank_takes(bank["id"])
    stripe.deliver(client)
    payout.refresh_from_db()
    assert (payout.state, payout.next_try_at) == (Payout.State.PAID, None)
    assert states(payout) == ["requested", "debited", "transferred", "paid"]
    assert earnings_balances(otto, now=utc_now()).paid_microusd == 50 * USD
    assert fees_balance() == 20 * USD + FEE
    assert ledger_differences() == []


def test_the_same_key_asks_once_and_for_another_amount_not_at_all(stripe, otto):
    assert asked(otto).pk == asked(otto).pk
    assert earnings_balance(otto) == 30 * USD
    with pytest.raises(IdempotencyConflict):
        asked(otto, usd=20)


def test_what_is_still_held_back_cannot_be_paid_out(stripe, otto):
    earn(otto, usd=40, label="new", earned_at=utc_now())
    with pytest.raises(EarningsImmature, match=r"\$80.00 of your earnings"):
        asked(otto, usd=90)
    asked(otto, usd=80)


def test_what_is_debited_cannot_be_asked_for_again(stripe, otto):
    asked(otto)
    with pytest.raises(EarningsImmature, match=r"\$30.00"):
        asked(otto, key="second")


@pytest.mark.parametrize("amount", [0, -1, 5 * USD - 10_000, 10 * USD + 1, 10_000 * USD + 10_000, True])
def test_an_amount_outside_the_bounds_moves_nothing(stripe, otto, amount):
    with pytest.raises(AmountInvalid):
        payout_request(user=otto, amount_microusd=amount, idempotency_key="k")
    assert (Payout.objects.count(), earnings_balance(otto)) == (0, 80 * USD)


def test_a_country_with_a_higher_least_amount_says_so(stripe):
    carla = ready(stripe, earner("carla"), country="CO")
    with pytest.raises(AmountInvalid, match=r"from \$45.00"):
        asked(carla, usd=40)


def test_without_an_account_or_before_it_is_ready_nothing_is_asked(stripe):
    otto = earner()
    with pytest.raises(PayoutAccountMissing, match="choose your country"):
        asked(otto)
    account = ready(stripe, otto).payout_account
    stripe.world.onboard(account.stripe_id, "restricted", "requirements_past_due")
    payout_account_sync(stripe_id=account.stripe_id)
    with pytest.raises(PayoutAccountUnready, match="continue the set-up"):
        asked(otto)


@pytest.mark.parametrize("kind", ["lost", "done", "error", "limited"])
def test_a_transfer_without_an_answer_is_asked_again_and_made_once(stripe, otto, kind):
    stripe.faults.append(Fault("/v1/transfers", kind))
    payout = advanced(asked(otto))
    assert (payout.state, payout.tries) == (Payout.State.DEBITED, 1)
    assert payout.next_try_at is not None
    assert payout.next_try_at > utc_now()
    if kind == "error":
        stripe.forget_keys()
    assert advanced(payout, later=timedelta(minutes=5)).state == Payout.State.TRANSFERRED
    assert len(stripe.world.of("transfer")) == 1
    assert len(stripe.world.of("payout")) == 1
    assert ledger_differences() == []


def test_a_transfer_whose_key_stripe_has_forgotten_is_found_instead_of_made_again(stripe, otto):
    stripe.faults.append(Fault("/v1/transfers", "done"))
    payout = advanced(asked(otto))
    stripe.forget_keys()
    assert advanced(payout, later=timedelta(days=2)).state == Payout.State.TRANSFERRED
    assert len(stripe.world.of("transfer")) == 1


def test_a_bank_payout_without_an_answer_is_made_once(stripe, otto):
    stripe.faults.append(Fault("/v1/payouts", "done"))
    payout = advanced(asked(otto))
    assert payout.state == Payout.State.TRANSFERRED
    stripe.forget_keys()
    payout = advanced(payout, later=timedelta(days=2))
    assert payout.bank_payout_id == stripe.world.of("payout")[0]["id"]
    assert len(stripe.world.of("payout")) == 1


def test_when_stripe_never_answers_the_asking_ends_and_the_money_stays_in_transit(stripe, otto):
    stripe.faults.append(Fault("/v1/transfers", "lost", times=1_000))
    payout = asked(otto)
    for number in range(MAX_TRIES + 5):
        payout = advanced(payout, later=timedelta(hours=7 * number))
    assert (payout.state, payout.next_try_at, payout.tries) == (Payout.State.DEBITED, None, MAX_TRIES)
    assert earnings_balance(otto) == 30 * USD
    assert ledger_differences() == []


@pytest.mark.parametrize(
    ("cause", "words"),
    [
        (lambda world, account: setattr(world, "balance_cents", 10), "own balance at Stripe"),
        (lambda world, account: world.close(account), "is closed"),
        (lambda world, account: world.onboard(account, "restricted"), "lacks what it needs"),
    ],
)
def test_a_transfer_that_stripe_refuses_returns_the_money_once_with_one_sentence(
    stripe, client, otto, cause, words
):
    payout = asked(otto)
    cause(stripe.world, payout.stripe_account)
    for hours in (0, 1, 48):
        payout = advanced(payout, later=timedelta(hours=hours))
    assert payout.state == Payout.State.RETURNED
    assert words in payout.because
    assert states(payout) == ["requested", "debited", "returned"]
    assert earnings_balance(otto) == 80 * USD
    assert len([r for r in stripe.requests if r.path == "/v1/transfers"]) == 1
    assert ledger_differences() == []


def test_what_the_bank_refuses_waits_at_stripe_and_is_never_given_back_twice(stripe, client, otto):
    payout = advanced(asked(otto))
    stripe.world.bank_refuses(payout.bank_payout_id)
    stripe.deliver(client)
    payout.refresh_from_db()
    assert payout.state == Payout.State.FAILED
    assert "waits in your account" in payout.because
    assert earnings_balance(otto) == 30 * USD
    assert payout_bank_retry(payout_id=payout.pk, now=utc_now())
    assert not payout_bank_retry(payout_id=payout.pk, now=utc_now())
    payout = advanced(payout)
    stripe.world.bank_takes(payout.bank_payout_id)
    stripe.deliver(client)
    payout.refresh_from_db()
    assert payout.state == Payout.State.PAID
    assert len(stripe.world.of("payout")) == 2
    assert len(stripe.world.of("transfer")) == 1
    assert ledger_differences() == []


def test_a_bank_may_refuse_what_it_had_taken_and_a_late_yes_changes_nothing(stripe, client, otto):
    payout = advanced(asked(otto))
    stripe.world.bank_takes(payout.bank_payout_id)
    stripe.world.bank_refuses(payout.bank_payout_id)
    paid, failed = stripe.untold()[-2:]
    stripe.deliver(client, [paid, failed, paid])
    payout.refresh_from_db()
    assert payout.state == Payout.State.FAILED


def test_events_of_the_bank_in_the_wrong_order_end_the_same(stripe, client, otto):
    payout = advanced(asked(otto))
    stripe.world.bank_takes(payout.bank_payout_id)
    stripe.world.bank_refuses(payout.bank_payout_id)
    paid, failed = stripe.untold()[-2:]
    stripe.deliver(client, [failed, paid])
    payout.refresh_from_db()
    assert payout.state == Payout.State.FAILED


def test_a_reversed_transfer_returns_the_money_and_our_fee(stripe, client, otto):
    payout = advanced(asked(otto))
    stripe.world.bank_refuses(payout.bank_payout_id)
    stripe.world.reverse(payout.transfer_id)
    stripe.deliver(client)
    payout.refresh_from_db()
    assert payout.state == Payout.State.RETURNED
    assert (earnings_balance(otto), fees_balance()) == (80 * USD, 20 * USD)
    assert ledger_differences() == []


def test_a_part_of_a_transfer_that_is_reversed_waits_for_an_operator(stripe, client, otto):
    payout = advanced(asked(otto))
    stripe.world.reverse(payout.transfer_id, 100)
    stripe.deliver(client)
    payout.refresh_from_db()
    assert payout.state == Payout.State.TRANSFERRED
    assert earnings_balance(otto) == 30 * USD


def test_what_arrives_later_goes_to_the_bank_later(stripe, otto):
    stripe.world.arrives_after_s = int((utc_now() + timedelta(days=2)).timestamp())
    payout = advanced(asked(otto))
    assert payout.state == Payout.State.TRANSFERRED
    assert stripe.world.of("payout") == []
    assert payout.next_try_at is not None
    assert payout.next_try_at > utc_now() + timedelta(days=1)
    stripe.world.arrives_after_s = 0
    assert advanced(payout, later=timedelta(days=2, minutes=1)).bank_payout_id


def test_a_freeze_takes_no_new_payout_and_sends_none_that_has_not_left(stripe, otto):
    payout = asked(otto)
    payouts_freeze(user=otto, operator=operator(), reason="two people, one phone.")
    with pytest.raises(PayoutsFrozen, match="two people"):
        asked(otto, usd=5, key="second")
    assert advanced(payout).state == Payout.State.DEBITED
    assert stripe.world.of("transfer") == []
    payouts_unfreeze(user=otto, operator=operator(), reason="explained.")
    assert advanced(payout, later=timedelta(hours=7)).state == Payout.State.TRANSFERRED


def test_a_freeze_does_not_stop_what_stripe_may_have_done_already(stripe, otto):
    stripe.faults.append(Fault("/v1/transfers", "done"))
    payout = advanced(asked(otto))
    payouts_freeze(user=otto, operator=operator(), reason="too late.")
    assert advanced(payout, later=timedelta(hours=7)).state == Payout.State.TRANSFERRED


def test_advancing_again_and_again_asks_stripe_for_nothing_more(stripe, otto):
    payout = asked(otto)
    for _ in range(3):
        payout_advance(payout_id=payout.pk, now=utc_now())
    sent = [request.path for request in stripe.requests]
    assert (sent.count("/v1/transfers"), sent.count("/v1/payouts")) == (1, 1)
    assert StripeCall.objects.filter(state=StripeCall.State.BEGUN).count() == 0


def test_another_owners_payout_is_not_found(stripe, otto):
    payout = asked(otto)
    with pytest.raises(PayoutNotFound):
        payout_of(person("olga"), payout.pk)


def test_every_state_is_in_the_table_and_every_end_is_reachable():
    assert set(TRANSITIONS) == {state.value for state in Payout.State}
    assert {target for targets in TRANSITIONS.values() for target in targets} == set(TRANSITIONS) - {
        "requested"
    }
