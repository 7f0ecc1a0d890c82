"""Many move money at the same moment: nothing is overdrawn, lost or paid twice."""

from functools import partial

import pytest

from billing.errors import IdempotencyConflict, InsufficientFunds
from billing.models import Hold, OperatorAction, Transfer
from billing.selectors import (
    earnings_balance,
    fees_balance,
    hold_remaining,
    ledger_differences,
    wallet_balance,
)
from billing.services import Charge, grant_post, hold_charge, hold_open, hold_release
from tests.at_once import at_once
from tests.billing.cast import buyer, operator, person

pytestmark = pytest.mark.django_db(transaction=True)


def charges(owner_ids: list[int], label: str, amount_microusd: int = 10) -> list[Charge]:
    return [
        Charge(idempotency_key=f"{label}:{owner_id}", owner_id=owner_id, amount_microusd=amount_microusd)
        for owner_id in owner_ids
    ]


def test_holds_at_once_never_overdraw_a_wallet():
    bea = buyer(wallet_microusd=1_000)
    raised = at_once(
        *(partial(hold_open, user=bea, reference=f"job:{n}", amount_microusd=300) for n in range(8))
    )
    assert [type(error) for error in raised] == [InsufficientFunds] * 5
    assert (wallet_balance(bea), Hold.objects.count()) == (100, 3)
    assert ledger_differences() == []


def test_charges_at_once_never_overdraw_a_hold():
    hold_open(user=buyer(), reference="job:1", amount_microusd=100)
    owner_ids = [person(f"owner {n}").pk for n in range(3)]
    raised = at_once(
        *(partial(hold_charge, reference="job:1", charges=charges(owner_ids, f"batch {n}")) for n in range(6))
    )
    assert [type(error) for error in raised] == [InsufficientFunds] * 3
    assert (hold_remaining("job:1"), fees_balance()) == (10, 18)
    assert ledger_differences() == []


def test_the_same_request_from_several_at_once_moves_its_money_once():
    bea, otto = buyer(wallet_microusd=1_000), person("otto")
    grant = partial(
        grant_post,
        user=bea,
        amount_microusd=50,
        operator=operator(),
        idempotency_key="grant",
        reason="a drill.",
    )
    assert at_once(grant, grant, grant, grant) == []
    assert OperatorAction.objects.filter(reason="a drill.").count() == 1
    assert wallet_balance(bea) == 1_050
    assert (
        at_once(*(partial(hold_open, user=bea, reference="job:1", amount_microusd=500) for _ in range(4)))
        == []
    )
    assert wallet_balance(bea) == 550
    batch = charges([otto.pk], "lease")
    assert at_once(*(partial(hold_charge, reference="job:1", charges=batch) for _ in range(4))) == []
    assert earnings_balance(otto) == 8
    assert at_once(*(partial(hold_release, reference="job:1") for _ in range(4))) == []
    assert wallet_balance(bea) == 1_040
    assert Transfer.objects.count() == 5
    assert ledger_differences() == []


def test_a_reference_that_several_buyers_use_at_once_goes_to_one_of_them():
    buyers = [buyer(f"buyer {n}", wallet_microusd=100) for n in range(4)]
    raised = at_once(
        *(partial(hold_open, user=user, reference="job:1", amount_microusd=60) for user in buyers)
    )
    assert [type(error) for error in raised] == [IdempotencyConflict] * 3
    assert sorted(map(wallet_balance, buyers)) == [40, 100, 100, 100]
    assert ledger_differences() == []


def test_holds_that_pay_the_same_owners_at_once_do_not_deadlock():
    owner_ids = [person(f"owner {n}").pk for n in range(5)]
    jobs = [f"job:{n}" for n in range(6)]
    for number, job in enumerate(jobs):
        hold_open(user=buyer(f"buyer {number}"), reference=job, amount_microusd=1_000)
    raised = at_once(
        *(
            partial(hold_charge, reference=job, charges=charges(owner_ids[:: 1 if n % 2 else -1], job))
            for n, job in enumerate(jobs)
        )
    )
    assert raised == []
    assert fees_balance() == 6 * 5 * 2
    assert ledger_differences() == []


def test_a_check_of_the_books_while_money_moves_sees_no_difference_and_loses_nothing():
    hold_open(user=buyer(), reference="job:1", amount_microusd=10_000)
    owner = person("otto")
    seen = []

    def settle(label: str) -> None:
        for number in range(10):
            hold_charge(reference="job:1", charges=charges([owner.pk], f"{label}:{number}"))

    def check() -> None:
        for _ in range(20):
            seen.extend(ledger_differences())

    assert at_once(partial(settle, "a"), partial(settle, "b"), check) == []
    assert seen == []
    assert earnings_balance(owner) == 2 * 10 * 8
    assert ledger_differences() == []
