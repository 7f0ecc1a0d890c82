"""Whatever is asked of the ledger in whatever order, it does what a model of plain dictionaries does."""

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from django.db import connection, transaction
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from billing.domain.entries import earnings_key, wallet_key
from billing.errors import HoldNotFound, HoldReleased, IdempotencyConflict, InsufficientFunds
from billing.models import Account, Hold
from billing.selectors import ledger_differences
from billing.services import Charge, grant_post, hold_charge, hold_open, hold_release
from common.errors import NightshiftError
from tests.billing.cast import operator, person

PEOPLE = 2
people = st.integers(0, PEOPLE - 1)
amounts = st.integers(1, 1_000)
keys = st.sampled_from(["key:1", "key:2", "key:3", "key:4"])
references = st.sampled_from(["job:1", "job:2", "job:3"])
EXAMPLES = settings(max_examples=15, stateful_step_count=30)
charge_lists = st.lists(st.tuples(keys, people, amounts), max_size=4)


@dataclass
class ModelHold:
    buyer: int
    amount: int
    left: int
    released: int | None = None


@dataclass
class Model:
    """What the ledger should say. A fifth of each charge, rounded down, is the platform's."""

    wallets: dict[int, int] = field(default_factory=lambda: dict.fromkeys(range(PEOPLE), 0))
    earnings: dict[int, int] = field(default_factory=lambda: dict.fromkeys(range(PEOPLE), 0))
    fees: int = 0
    holds: dict[str, ModelHold] = field(default_factory=dict)
    asked: dict[str, tuple[object, ...]] = field(default_factory=dict)

    def grant(self, key: str, user: int, amount: int) -> None:
        if self._is_repeat(key, ("grant", user, amount)):
            return
        self.asked[key] = ("grant", user, amount)
        self.wallets[user] += amount

    def open(self, reference: str, buyer: int, amount: int) -> None:
        if hold := self.holds.get(reference):
            if (hold.buyer, hold.amount) != (buyer, amount):
                raise IdempotencyConflict(reference)
            return
        if self.wallets[buyer] < amount:
            raise InsufficientFunds(place="wallet", missing_microusd=amount - self.wallets[buyer])
        self.wallets[buyer] -= amount
        self.holds[reference] = ModelHold(buyer, amount, left=amount)

    def charge(self, reference: str, charges: list[tuple[str, int, int]]) -> None:
        if reference not in self.holds:
            raise HoldNotFound(reference)
        hold = self.holds[reference]
        fresh: dict[str, tuple[str, str, int, int]] = {}
        if hold.released is not None and any(key not in self.asked for key, _, _ in charges):
            raise HoldReleased(reference)
        for key, owner, amount in charges:
            request = ("charge", reference, owner, amount)
            if fresh.setdefault(key, request) != request:
                raise IdempotencyConflict(key)
        fresh = {key: request for key, request in fresh.items() if not self._is_repeat(key, request)}
        total = sum(amount for _, _, _, amount in fresh.values())
        if total > hold.left:
            raise InsufficientFunds(place="hold", missing_microusd=total - hold.left)
        self.asked |= fresh
        hold.left -= total
        for _, _, owner, amount in fresh.values():
            self.fees += amount // 5
            self.earnings[owner] += amount - amount // 5

    def release(self, reference: str) -> int:
        if reference not in self.holds:
            raise HoldNotFound(reference)
        hold = self.holds[reference]
        if hold.released is None:
            hold.released, hold.left = hold.left, 0
            self.wallets[hold.buyer] += hold.released
        return hold.released

    def _is_repeat(self, key: str, request: tuple[object, ...]) -> bool:
        if key in self.asked and self.asked[key] != request:
            raise IdempotencyConflict(key)
        return key in self.asked


class LedgerMachine(RuleBasedStateMachine):
    """Every example runs in a savepoint of its own, on books that are empty at its start."""

    def __init__(self) -> None:
        super().__init__()
        self.savepoint = transaction.atomic()
        self.savepoint.__enter__()
        self.model = Model()
        self.people = [person(f"person {number}") for number in range(PEOPLE)]
        self.operator = operator()

    def teardown(self) -> None:
        try:
            connection.check_constraints()
            assert ledger_differences() == []
        finally:
            transaction.set_rollback(True)
            self.savepoint.__exit__(None, None, None)

    @rule(key=keys, who=people, amount=amounts)
    def grant(self, key, who, amount):
        self._both(
            lambda: self.model.grant(key, who, amount),
            lambda: grant_post(
                user=self.people[who],
                amount_microusd=amount,
                operator=self.operator,
                idempotency_key=key,
                reason="a rule of the model.",
            ),
        )

    @rule(reference=references, who=people, amount=amounts)
    def open(self, reference, who, amount):
        self._both(
            lambda: self.model.open(reference, who, amount),
            lambda: hold_open(user=self.people[who], reference=reference, amount_microusd=amount),
        )

    @rule(reference=references, charges=charge_lists)
    def charge(self, reference, charges):
        asked = [
            Charge(idempotency_key=k, owner_id=self.people[who].pk, amount_microusd=a)
            for k, who, a in charges
        ]
        self._both(
            lambda: self.model.charge(reference, charges),
            lambda: hold_charge(reference=reference, charges=asked),
        )

    @rule(reference=references)
    def release(self, reference):
        self._both(lambda: self.model.release(reference), lambda: hold_release(reference=reference))

    @invariant()
    def balances_agree(self):
        balances = dict(
            Account.objects.exclude(kind=Account.Kind.HOLD).values_list("key", "balance_microusd")
        )
        expected = {
            "fees": self.model.fees,
            **{wallet_key(user.pk): self.model.wallets[number] for number, user in enumerate(self.people)},
            **{earnings_key(user.pk): self.model.earnings[number] for number, user in enumerate(self.people)},
        }
        assert {key: balances.get(key, 0) for key in expected} == expected
        left = dict(Hold.objects.values_list("reference", "account__balance_microusd"))
        assert left == {reference: hold.left for reference, hold in self.model.holds.items()}

    def _both(self, model_call: Callable[[], object], ledger_call: Callable[[], object]) -> None:
        """Ask both, and see that they answer, or refuse, alike."""
        expected, found = _outcome(model_call), _outcome(ledger_call)
        if isinstance(expected, NightshiftError) or isinstance(found, NightshiftError):
            assert type(expected) is type(found), (expected, found)
            assert getattr(expected, "missing_microusd", 0) == getattr(found, "missing_microusd", 0)
        elif expected is not None:
            assert expected == found


def _outcome(call: Callable[[], object]) -> object:
    try:
        return call()
    except NightshiftError as error:
        return error


@pytest.mark.django_db
@pytest.mark.timeout(600)  # hypothesis takes its time to find the shortest failing story
def test_the_ledger_does_what_the_model_does():
    run_state_machine_as_test(LedgerMachine, settings=EXAMPLES)
