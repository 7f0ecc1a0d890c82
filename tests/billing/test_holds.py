"""Money set aside for one purpose, and what is left of it given back."""

import pytest
from django.db import IntegrityError

from billing.errors import AmountInvalid, HoldNotFound, IdempotencyConflict, InsufficientFunds, KeyInvalid
from billing.models import Account, Hold
from billing.selectors import hold_remaining, ledger_differences, statement, wallet_balance
from billing.services import Charge, hold_charge, hold_open, hold_release
from tests.billing.cast import USD, buyer, person

pytestmark = pytest.mark.django_db


def test_a_hold_takes_its_amount_out_of_the_wallet():
    bea = buyer(wallet_microusd=10 * USD)
    hold = hold_open(user=bea, reference="job:1", amount_microusd=4 * USD)
    assert (hold.state, hold.amount_microusd) == (Hold.State.OPEN, 4 * USD)
    assert (wallet_balance(bea), hold_remaining("job:1")) == (6 * USD, 4 * USD)
    assert ledger_differences() == []


def test_a_hold_opened_twice_is_one():
    bea = buyer(wallet_microusd=10 * USD)
    first = hold_open(user=bea, reference="job:1", amount_microusd=6 * USD)
    assert hold_open(user=bea, reference="job:1", amount_microusd=6 * USD).pk == first.pk
    assert wallet_balance(bea) == 4 * USD


def test_a_reference_used_for_another_hold_is_a_conflict():
    bea, bob = buyer("bea"), buyer("bob")
    hold_open(user=bea, reference="job:1", amount_microusd=USD)
    with pytest.raises(IdempotencyConflict, match="job:1"):
        hold_open(user=bea, reference="job:1", amount_microusd=2 * USD)
    with pytest.raises(IdempotencyConflict, match="job:1"):
        hold_open(user=bob, reference="job:1", amount_microusd=USD)
    assert wallet_balance(bob) == 100 * USD


def test_a_wallet_that_has_too_little_says_how_much_is_missing():
    bea = buyer(wallet_microusd=3 * USD)
    with pytest.raises(InsufficientFunds, match=r"\$1.25 is missing in the wallet") as refused:
        hold_open(user=bea, reference="job:1", amount_microusd=4_250_000)
    assert refused.value.missing_microusd == 1_250_000
    assert wallet_balance(bea) == 3 * USD
    assert not Hold.objects.exists()


def test_a_person_without_a_wallet_has_nothing_to_hold():
    with pytest.raises(InsufficientFunds) as refused:
        hold_open(user=person("bob"), reference="job:1", amount_microusd=7)
    assert refused.value.missing_microusd == 7


@pytest.mark.parametrize("amount_microusd", [0, -5, 10**15 + 1])
def test_an_amount_that_cannot_be_held_is_refused_by_name(amount_microusd):
    with pytest.raises(AmountInvalid) as refused:
        hold_open(user=buyer(), reference="job:1", amount_microusd=amount_microusd)
    assert refused.value.field == "amount_microusd"


@pytest.mark.parametrize("reference", ["", "j" * 81])
def test_a_reference_that_cannot_be_stored_is_refused_by_name(reference):
    with pytest.raises(KeyInvalid) as refused:
        hold_open(user=buyer(), reference=reference, amount_microusd=1)
    assert refused.value.field == "reference"


def test_work_accepted_before_a_cancel_is_paid_once_and_the_rest_returns():
    bea, otto = buyer(wallet_microusd=10 * USD), person("otto")
    hold_open(user=bea, reference="job:1", amount_microusd=4 * USD)
    accepted = [Charge(idempotency_key="charge:lease:1", owner_id=otto.pk, amount_microusd=USD)]
    for _ in range(2):  # settled again after a crash
        hold_charge(reference="job:1", charges=accepted)
        assert hold_release(reference="job:1") == 3 * USD
    assert (wallet_balance(bea), hold_remaining("job:1")) == (9 * USD, 0)
    assert [line.reason for line in statement(bea, Account.Kind.WALLET)] == ["release", "hold", "grant"]
    assert ledger_differences() == []


def test_a_hold_that_was_used_up_releases_nothing():
    bea, otto = buyer(), person("otto")
    hold_open(user=bea, reference="job:1", amount_microusd=USD)
    hold_charge(
        reference="job:1", charges=[Charge(idempotency_key="lease:1", owner_id=otto.pk, amount_microusd=USD)]
    )
    assert [hold_release(reference="job:1"), hold_release(reference="job:1")] == [0, 0]
    assert Hold.objects.get(reference="job:1").state == Hold.State.RELEASED


def test_a_released_hold_is_not_opened_again():
    bea = buyer()
    hold_open(user=bea, reference="job:1", amount_microusd=USD)
    hold_release(reference="job:1")
    assert hold_open(user=bea, reference="job:1", amount_microusd=USD).state == Hold.State.RELEASED
    assert wallet_balance(bea) == 100 * USD


def test_a_hold_that_was_never_opened_is_not_found():
    with pytest.raises(HoldNotFound, match="job:none"):
        hold_release(reference="job:none")
    with pytest.raises(HoldNotFound, match="job:none"):
        hold_remaining("job:none")


def test_the_database_takes_no_hold_of_nothing():
    hold_open(user=buyer(), reference="job:1", amount_microusd=USD)
    with pytest.raises(IntegrityError, match="hold_is_positive"):
        Hold.objects.update(amount_microusd=0)
