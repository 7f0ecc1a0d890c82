"""Reads of the ledger: balances, statements, and the comparison of every balance with its postings."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.db import connection
from django.db.models import Count, F, Q, QuerySet, Sum
from django.db.models.functions import Coalesce

from accounts.models import User
from billing.domain.entries import FEES_KEY, earnings_key, wallet_key
from billing.errors import HoldNotFound
from billing.models import Account, Hold, Posting, Transfer

STATEMENT_LINES = 100


@dataclass(frozen=True, slots=True)
class StatementLine:
    """One posting as its owner sees it: money in is positive, money out negative."""

    created_at: datetime
    reason: str
    memo: str
    amount_microusd: int


@dataclass(frozen=True, slots=True)
class OpenHold:
    """Money of a buyer that is set aside now."""

    reference: str
    amount_microusd: int
    left_microusd: int
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Charged:
    """What a hold has paid, and what of that went to the platform."""

    amount_microusd: int
    fee_microusd: int


@dataclass(frozen=True, slots=True)
class Difference:
    """Something in the books that does not agree: what it is, which one, and both figures."""

    rule: str
    name: str
    expected_microusd: int
    found_microusd: int


def wallet_balance(user: User) -> int:
    """Micro-USD that a buyer can spend; money in holds is not among it."""
    return _balance(wallet_key(user.pk))


def earnings_balance(user: User) -> int:
    return _balance(earnings_key(user.pk))


def fees_balance() -> int:
    return _balance(FEES_KEY)


def hold_remaining(reference: str) -> int:
    """What a hold has left, in micro-USD. Raises HoldNotFound."""
    remaining = (
        Hold.objects.filter(reference=reference).values_list("account__balance_microusd", flat=True).first()
    )
    if remaining is None:
        raise HoldNotFound(reference)
    return remaining


def hold_charged(reference: str) -> Charged:
    """What has been charged to a hold so far. Raises HoldNotFound."""
    hold = Hold.objects.filter(reference=reference).first()
    if hold is None:
        raise HoldNotFound(reference)
    of_hold = Posting.objects.filter(account_id=hold.account_id, transfer__reason=Transfer.Reason.CHARGE)
    fees = Posting.objects.filter(account__key=FEES_KEY, transfer__in=of_hold.values("transfer"))
    return Charged(amount_microusd=-_sum(of_hold), fee_microusd=_sum(fees))


def _sum(postings: QuerySet[Posting]) -> int:
    return int(postings.aggregate(total=Coalesce(Sum("amount_microusd"), 0))["total"])


def open_holds(user: User) -> list[OpenHold]:
    """What a person has set aside, newest first."""
    rows = (
        Hold.objects.filter(wallet__user=user, state=Hold.State.OPEN)
        .order_by("-created_at")
        .values_list("reference", "amount_microusd", "account__balance_microusd", "created_at")
    )
    return [OpenHold(*row) for row in rows]


def earnings_by_charge_keys(*, owner_id: int, keys: Iterable[str]) -> dict[str, int]:
    """What an owner earned, after the fee, by each of these charges that has been posted."""
    rows = Posting.objects.filter(
        account__key=earnings_key(owner_id), transfer__idempotency_key__in=list(keys)
    ).values_list("transfer__idempotency_key", "amount_microusd")
    return dict(rows)


def statement(user: User, kind: Account.Kind, *, lines: int = STATEMENT_LINES) -> list[StatementLine]:
    """The latest lines of a person's wallet or earnings, newest first."""
    rows = (
        Posting.objects.filter(account__user=user, account__kind=kind)
        .order_by("-pk")
        .values_list("transfer__created_at", "transfer__reason", "transfer__memo", "amount_microusd")
    )
    return [StatementLine(*row) for row in rows[:lines]]


def ledger_differences() -> list[Difference]:
    """Every disagreement within the books; none in a ledger that is right.

    Reads only, and each rule is one statement: it sees one moment of the books, so that transfers posted meanwhile
    are no false alarm, and none can be lost by it.
    """
    return [
        *_balances_that_drifted(),
        *_transfers_out_of_balance(),
        *_books_that_do_not_close(),
        *_holds_that_do_not_add_up(),
        *_transit_that_does_not_add_up(),
    ]


def _balance(key: str) -> int:
    return Account.objects.filter(key=key).values_list("balance_microusd", flat=True).first() or 0


def _balances_that_drifted() -> list[Difference]:
    rows = (
        Account.objects.annotate(posted=Coalesce(Sum("postings__amount_microusd"), 0))
        .exclude(posted=F("balance_microusd"))
        .order_by("key")
        .values_list("key", "posted", "balance_microusd")
    )
    return [Difference("balance is the sum of its postings", *row) for row in rows]


def _transfers_out_of_balance() -> list[Difference]:
    rows = (
        Transfer.objects.annotate(
            posted=Coalesce(Sum("postings__amount_microusd"), 0), lines=Count("postings")
        )
        .filter(~Q(posted=0) | Q(lines=0))
        .order_by("idempotency_key")
        .values_list("idempotency_key", "posted")
    )
    return [Difference("transfer has postings that sum to zero", key, 0, posted) for key, posted in rows]


def _books_that_do_not_close() -> list[Difference]:
    total = Account.objects.aggregate(total=Coalesce(Sum("balance_microusd"), 0))["total"]
    return [Difference("all balances sum to zero", "all accounts", 0, total)] if total else []


def _holds_that_do_not_add_up() -> list[Difference]:
    """A hold was filled once, with its amount; and a released one is empty."""
    filled: QuerySet[Hold, tuple[str, int, int]] = (
        Hold.objects.annotate(
            filled=Coalesce(
                Sum("account__postings__amount_microusd", filter=Q(account__postings__amount_microusd__gt=0)),
                0,
            )
        )
        .exclude(filled=F("amount_microusd"))
        .order_by("reference")
        .values_list("reference", "amount_microusd", "filled")
    )
    leftover = (
        Hold.objects.filter(state=Hold.State.RELEASED)
        .exclude(account__balance_microusd=0)
        .order_by("reference")
        .values_list("reference", "account__balance_microusd")
    )
    return [
        *(Difference("hold was filled with its amount", *row) for row in filled),
        *(Difference("released hold is empty", reference, 0, left) for reference, left in leftover),
    ]


_TRANSIT = """
SELECT COALESCE((SELECT SUM(balance_microusd) FROM billing_account WHERE kind = 'transit'), 0),
       COALESCE((SELECT SUM(amount_microusd) FROM billing_payout WHERE state = 'debited'), 0)
     + COALESCE((SELECT SUM(amount_microusd) FROM billing_refund WHERE state = 'debited'), 0)
"""


def _transit_that_does_not_add_up() -> list[Difference]:
    """What is in transit is what payouts and refunds were debited and have not sent."""
    with connection.cursor() as cursor:
        cursor.execute(_TRANSIT)
        found, expected = map(int, cursor.fetchone())
    rule = "money in transit is that of payouts and refunds under way"
    return [Difference(rule, "all of it", expected, found)] if found != expected else []
