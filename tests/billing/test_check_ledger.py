"""`manage.py check_ledger` finds whatever does not agree within the books."""

from collections.abc import Callable

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection

from billing.guards import guards_put_up, guards_take_down
from billing.models import Account, Hold, Posting, Transfer
from billing.selectors import Difference, ledger_differences
from billing.services import Charge, hold_charge, hold_open, hold_release
from tests.billing.cast import USD, buyer, person

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _books_with_something_of_everything():
    bea, otto = buyer(wallet_microusd=10 * USD), person("otto")
    for reference in ("job:1", "job:2"):
        hold_open(user=bea, reference=reference, amount_microusd=USD)
    hold_charge(
        reference="job:1",
        charges=[Charge(idempotency_key="lease:1", owner_id=otto.pk, amount_microusd=1_000)],
    )
    hold_release(reference="job:2")


def sql(statement: str, *parameters: int) -> None:
    """Do to the books what no code of ours does."""
    connection.check_constraints()  # what is still due at commit would keep the guards from being taken down
    guards_take_down(connection)
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
    guards_put_up(connection)


def rules_broken() -> set[str]:
    return {difference.rule for difference in ledger_differences()}


def test_books_that_are_right_say_so(capsys):
    call_command("check_ledger")
    assert capsys.readouterr().out == "The ledger is right: 6 accounts, 5 transfers.\n"


def test_a_balance_that_drifted_is_found(capsys):
    wallet = Account.objects.get(kind=Account.Kind.WALLET)
    sql("UPDATE billing_account SET balance_microusd = balance_microusd + 1 WHERE id = %s", wallet.pk)
    assert (
        Difference("balance is the sum of its postings", wallet.key, 9 * USD, 9 * USD + 1)
        in ledger_differences()
    )
    with pytest.raises(CommandError, match="2 difference") as failed:
        call_command("check_ledger")
    assert failed.value.returncode == 1
    table = capsys.readouterr().out
    assert wallet.key in table
    assert "$9.000001" in table


def _cheat_the_fees() -> None:
    fees = Account.objects.get(kind=Account.Kind.FEES)
    sql("UPDATE billing_account SET balance_microusd = 500 WHERE id = %s", fees.pk)


def _lose_a_posting() -> None:
    fees = Posting.objects.get(account__kind=Account.Kind.FEES)
    with (
        connection.cursor() as cursor
    ):  # as check_constraints does between statements, so that nothing is deferred
        cursor.execute("SELECT 1")
    sql("DELETE FROM billing_posting WHERE id = %s", fees.pk)


def _lose_the_lines_of_a_transfer() -> None:
    Transfer.objects.create(idempotency_key="empty", reason="hold", asked="hold")


def _shrink_a_hold() -> None:
    Hold.objects.filter(reference="job:1").update(amount_microusd=USD - 1)


def _release_a_hold_by_its_state_alone() -> None:
    Hold.objects.filter(reference="job:1").update(state=Hold.State.RELEASED)


@pytest.mark.parametrize(
    ("corrupt", "rules"),
    [
        (_cheat_the_fees, {"balance is the sum of its postings", "all balances sum to zero"}),
        (_lose_a_posting, {"balance is the sum of its postings", "transfer has postings that sum to zero"}),
        (_lose_the_lines_of_a_transfer, {"transfer has postings that sum to zero"}),
        (_shrink_a_hold, {"hold was filled with its amount"}),
        (_release_a_hold_by_its_state_alone, {"released hold is empty"}),
    ],
)
def test_each_kind_of_damage_is_found(corrupt: Callable[[], None], rules: set[str]):
    corrupt()
    assert rules_broken() == rules
