"""A hold pays owners, the platform's fee taken from each charge."""

import pytest

from billing.errors import (
    AmountInvalid,
    HoldNotFound,
    HoldReleased,
    IdempotencyConflict,
    InsufficientFunds,
    KeyInvalid,
)
from billing.models import Account, Posting, Transfer
from billing.selectors import (
    earnings_balance,
    earnings_by_charge_keys,
    fees_balance,
    hold_remaining,
    ledger_differences,
    statement,
)
from billing.services import Charge, hold_charge, hold_open, hold_release
from tests.billing.cast import USD, buyer, person
from tests.prices import fee_is

pytestmark = pytest.mark.django_db


def held(amount_microusd: int = 10 * USD, reference: str = "job:1") -> str:
    hold_open(user=buyer(f"buyer of {reference}"), reference=reference, amount_microusd=amount_microusd)
    return reference


def charge(owner, amount_microusd: int, key: str = "lease:1") -> Charge:
    return Charge(idempotency_key=key, owner_id=owner.pk, amount_microusd=amount_microusd)


def test_a_charge_goes_to_the_owner_less_the_fee():
    reference, owner = held(), person("otto")
    hold_charge(reference=reference, charges=[charge(owner, 1_000_003)], memo="round 0")
    assert hold_remaining(reference) == 10 * USD - 1_000_003
    assert earnings_balance(owner) == 800_003  # the fee of 200,000.6 is rounded down, in the owner's favour
    assert fees_balance() == 200_000
    assert [
        (line.reason, line.memo, line.amount_microusd) for line in statement(owner, Account.Kind.EARNINGS)
    ] == [("charge", "round 0", 800_003)]
    assert ledger_differences() == []


def test_a_batch_pays_every_owner_and_says_what_each_charge_earned():
    reference, otto, olga = held(), person("otto"), person("olga")
    hold_charge(
        reference=reference,
        charges=[charge(otto, 100, "lease:1"), charge(olga, 200, "lease:2"), charge(otto, 300, "lease:3")],
    )
    assert (earnings_balance(otto), earnings_balance(olga), fees_balance()) == (320, 160, 120)
    assert earnings_by_charge_keys(owner_id=otto.pk, keys=["lease:1", "lease:2", "lease:3", "lease:4"]) == {
        "lease:1": 80,
        "lease:3": 240,
    }


def test_a_charge_asked_for_twice_is_paid_once():
    reference, owner = held(), person("otto")
    first = hold_charge(reference=reference, charges=[charge(owner, 100)])
    again = hold_charge(reference=reference, charges=[charge(owner, 100), charge(owner, 50, "lease:2")])
    assert again[0].pk == first[0].pk
    assert hold_remaining(reference) == 10 * USD - 150


def test_a_charge_repeated_within_a_batch_is_paid_once():
    reference, owner = held(), person("otto")
    first, second = hold_charge(reference=reference, charges=[charge(owner, 100), charge(owner, 100)])
    assert first.pk == second.pk
    assert hold_remaining(reference) == 10 * USD - 100


def test_a_hold_keeps_the_fee_it_was_opened_with():
    reference, owner = held(), person("otto")
    hold_charge(reference=reference, charges=[charge(owner, 100)])
    fee_is(5_000)
    hold_charge(reference=reference, charges=[charge(owner, 100), charge(owner, 100, "lease:2")])
    assert (earnings_balance(owner), fees_balance()) == (160, 40)
    hold_charge(reference=held(reference="job:2"), charges=[charge(owner, 100, "lease:3")])
    assert (earnings_balance(owner), fees_balance()) == (210, 90)


@pytest.mark.parametrize("changed", ["amount", "owner", "hold"])
def test_the_same_key_for_another_charge_is_a_conflict(changed):
    reference, owner = held(), person("otto")
    hold_charge(reference=reference, charges=[charge(owner, 100)])
    with pytest.raises(IdempotencyConflict, match="lease:1"):
        hold_charge(
            reference=held(reference="job:2") if changed == "hold" else reference,
            charges=[
                charge(person("olga") if changed == "owner" else owner, 101 if changed == "amount" else 100),
                charge(owner, 7, "lease:2"),
            ],
        )
    assert earnings_balance(owner) == 80  # and the new charge of the batch has moved nothing either


def test_two_charges_of_a_batch_under_one_key_are_a_conflict():
    reference, owner = held(), person("otto")
    with pytest.raises(IdempotencyConflict):
        hold_charge(reference=reference, charges=[charge(owner, 100), charge(owner, 101)])
    assert earnings_balance(owner) == 0


def test_charges_over_what_the_hold_has_left_move_nothing():
    reference, owner = held(1_000), person("otto")
    with pytest.raises(InsufficientFunds, match=r"\$0.0002 is missing in the hold") as refused:
        hold_charge(reference=reference, charges=[charge(owner, 700), charge(owner, 500, "lease:2")])
    assert refused.value.missing_microusd == 200
    assert (hold_remaining(reference), earnings_balance(owner)) == (1_000, 0)
    assert not Transfer.objects.filter(reason="charge").exists()


def test_a_released_hold_takes_no_new_charge_but_knows_the_old_ones():
    reference, owner = held(), person("otto")
    hold_charge(reference=reference, charges=[charge(owner, 100)])
    hold_release(reference=reference)
    hold_charge(reference=reference, charges=[charge(owner, 100)])
    with pytest.raises(HoldReleased):
        hold_charge(reference=reference, charges=[charge(owner, 100), charge(owner, 1, "lease:2")])
    assert earnings_balance(owner) == 80


@pytest.mark.parametrize("fee_basis_points", [0, 10_000])
def test_a_fee_of_nothing_or_everything_posts_no_empty_line(fee_basis_points):
    fee_is(fee_basis_points)
    reference, owner = held(), person("otto")
    [transfer] = hold_charge(reference=reference, charges=[charge(owner, 100)])
    assert Posting.objects.filter(transfer=transfer).count() == 2
    assert earnings_balance(owner) + fees_balance() == 100


@pytest.mark.parametrize("amount_microusd", [0, -1, 10**15 + 1, True, 1.5])
def test_an_amount_that_cannot_be_charged_is_refused_by_name(amount_microusd):
    reference, owner = held(), person("otto")
    with pytest.raises(AmountInvalid, match="amount_microusd must be") as refused:
        hold_charge(reference=reference, charges=[charge(owner, amount_microusd)])
    assert refused.value.field == "amount_microusd"


@pytest.mark.parametrize("key", ["", "x" * 121])
def test_a_key_that_cannot_be_stored_is_refused_by_name(key):
    reference, owner = held(), person("otto")
    with pytest.raises(KeyInvalid) as refused:
        hold_charge(reference=reference, charges=[charge(owner, 1, key)])
    assert refused.value.field == "idempotency_key"


def test_a_hold_that_was_never_opened_cannot_be_charged():
    with pytest.raises(HoldNotFound, match="job:none"):
        hold_charge(reference="job:none", charges=[])


def test_a_batch_costs_a_few_queries_and_not_a_few_for_each_charge(django_assert_max_num_queries):
    reference = held()
    owners = [person(f"owner {index}") for index in range(20)]
    charges = [charge(owners[index % 20], 10, f"lease:{index}") for index in range(200)]
    with django_assert_max_num_queries(20):
        hold_charge(reference=reference, charges=charges)
    assert hold_remaining(reference) == 10 * USD - 2_000
