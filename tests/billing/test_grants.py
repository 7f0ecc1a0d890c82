"""An operator puts money into a wallet."""

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import IntegrityError

from accounts.models import User
from billing.domain.amounts import MAX_AMOUNT_MICROUSD
from billing.errors import AmountInvalid, IdempotencyConflict, KeyInvalid, NotAnOperator
from billing.models import Account, OperatorAction, Transfer
from billing.selectors import earnings_balance, ledger_differences, statement, wallet_balance
from billing.services import grant_post
from tests.billing.cast import USD, operator, person

pytestmark = pytest.mark.django_db


def grant(user, amount_microusd: int = USD, key: str = "key", memo: str = "welcome", by: User | None = None):
    return grant_post(
        user=user,
        amount_microusd=amount_microusd,
        operator=by or operator(),
        idempotency_key=key,
        reason="a lost night.",
        memo=memo,
    )


def test_a_grant_is_in_the_wallet_and_on_the_statement():
    bea = person("bea")
    assert wallet_balance(bea) == 0
    transfer = grant(bea)
    assert wallet_balance(bea) == USD
    assert earnings_balance(bea) == 0
    [line] = statement(bea, Account.Kind.WALLET)
    assert (line.reason, line.memo, line.amount_microusd) == ("grant", "welcome", USD)
    assert transfer.operator == operator()
    assert Account.objects.get(kind=Account.Kind.SOURCE).balance_microusd == -USD
    assert ledger_differences() == []


def test_a_grant_asked_for_twice_is_one():
    bea = person("bea")
    transfer = grant(bea)
    assert grant(bea).pk == transfer.pk
    assert wallet_balance(bea) == USD
    line = OperatorAction.objects.get()
    assert (line.action, line.operator, line.user) == ("grant", operator(), bea)
    assert (line.subject, line.reason) == (f"transfer:{transfer.pk}", "a lost night.")
    assert line.after == {"to": f"wallet:{bea.pk}", "amount_microusd": USD}


def test_a_key_used_for_another_grant_is_a_conflict():
    bea, bob = person("bea"), person("bob")
    grant(bea)
    with pytest.raises(IdempotencyConflict):
        grant(bea, USD + 1)
    with pytest.raises(IdempotencyConflict):
        grant(bob)
    assert (wallet_balance(bea), wallet_balance(bob)) == (USD, 0)


@pytest.mark.parametrize("amount_microusd", [0, -1, MAX_AMOUNT_MICROUSD + 1, 10**30, 0.5, False])
def test_an_amount_that_cannot_be_granted_is_refused_by_name(amount_microusd):
    with pytest.raises(AmountInvalid) as refused:
        grant(person("bea"), amount_microusd)
    assert refused.value.field == "amount_microusd"
    assert not Transfer.objects.exists()


def test_the_largest_amount_fits():
    bea = person("bea")
    grant(bea, MAX_AMOUNT_MICROUSD)
    assert wallet_balance(bea) == MAX_AMOUNT_MICROUSD


def test_an_empty_key_is_refused():
    with pytest.raises(KeyInvalid):
        grant(person("bea"), key="")


def test_only_an_operator_grants():
    bea, olive = person("bea"), operator()
    with pytest.raises(NotAnOperator):
        grant(bea, by=bea)
    olive.is_active = False
    with pytest.raises(NotAnOperator):
        grant(bea, by=olive)
    assert wallet_balance(bea) == 0


def test_the_database_wants_to_know_who_granted():
    with pytest.raises(IntegrityError, match="transfer_of_a_grant_names_its_operator"):
        Transfer.objects.create(idempotency_key="key", reason="grant", asked="grant")


def test_a_long_memo_is_cut_to_what_fits():
    bea = person("bea")
    grant(bea, memo="m" * 500)
    assert statement(bea, Account.Kind.WALLET)[0].memo == "m" * 200


def test_the_command_grants_and_says_what_the_wallet_has(capsys):
    bea = person("bea")
    for _ in range(2):
        call_command(
            "grant",
            email="Bea@example.org",
            usd="12.50",
            operator=operator().email,
            reason="a lost night.",
            key="first",
        )
    assert "bea@example.org now has $12.50" in capsys.readouterr().out
    assert wallet_balance(bea) == 12_500_000


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"email": "nobody@example.org"}, "--email: nobody has the address nobody@example.org"),
        ({"operator": "bea@example.org"}, "Only an operator"),
        ({"usd": "twelve"}, "'twelve' is not an amount"),
        ({"usd": "0"}, "must be from 1"),
        ({"usd": "0.0000001"}, "at most six decimals"),
        ({"reason": " "}, "reason must say why"),
    ],
)
def test_the_command_says_what_is_wrong(wrong, sentence):
    person("bea")
    given = {"email": "bea@example.org", "usd": "1", "operator": operator().email, "reason": "a drill."}
    with pytest.raises(CommandError, match=sentence):
        call_command("grant", **(given | wrong))
    assert not Transfer.objects.exists()
