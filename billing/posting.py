"""The only writer of transfers, postings and balances.

A batch of entries is posted in a handful of queries, whatever its size: lock the accounts, leave out what was posted
before, check for overdrafts, write, move the balances. Accounts are always made in the order of their keys and then
locked in the order of their ids, so that two posters wait for each other and never deadlock.
"""

from collections.abc import Iterable, Sequence

from django.db import IntegrityError, transaction
from django.db.models import BigIntegerField, Case, F, Value, When

from billing.domain.entries import Entry, entries_once, net_changes
from billing.errors import IdempotencyConflict, InsufficientFunds
from billing.models import Account, Posting, Transfer

# Accounts whose balances move in one UPDATE: far below any database's bound on parameters.
ACCOUNTS_AN_UPDATE = 200

_PLACES = {
    Account.Kind.WALLET: "wallet",
    Account.Kind.HOLD: "hold",
    Account.Kind.EARNINGS: "earnings account",
}


@transaction.atomic
def entries_post(entries: Sequence[Entry]) -> list[Transfer]:
    """Post the entries, all or none, and return the transfer of each in order.

    An entry whose key was posted before, for the same request, moves nothing and returns that first transfer.
    Raises IdempotencyConflict and InsufficientFunds.
    """
    entries_by_key = {entry.idempotency_key: entry for entry in entries_once(entries)}
    accounts = accounts_lock(key for entry in entries_by_key.values() for key in entry.lines)
    posted = _transfers_posted(entries_by_key)
    fresh = [entry for key, entry in entries_by_key.items() if key not in posted]
    if fresh:
        changes = net_changes(fresh)
        _refuse_overdraft(accounts, changes)
        posted |= _transfers_write(fresh, accounts)
        _balances_move({accounts[key].pk: amount for key, amount in changes.items() if amount})
    return [posted[entry.idempotency_key] for entry in entries]


def accounts_lock(keys: Iterable[str]) -> dict[str, Account]:
    """The accounts by key, made where they are missing and locked until the transaction ends."""
    wanted = sorted(set(keys))
    present = set(Account.objects.filter(key__in=wanted).values_list("key", flat=True))
    missing = [_account_new(key) for key in wanted if key not in present]
    if missing:
        Account.objects.bulk_create(missing, ignore_conflicts=True)
    # A lock for a change of the balance only: other posters may still refer to the account's key meanwhile.
    locked = Account.objects.select_for_update(no_key=True).filter(key__in=wanted).order_by("pk")
    return {account.key: account for account in locked}


def _account_new(key: str) -> Account:
    kind, _, rest = key.partition(":")
    owned = kind in (Account.Kind.WALLET, Account.Kind.EARNINGS)
    return Account(key=key, kind=Account.Kind(kind), user_id=int(rest) if owned else None)


def _transfers_posted(entries_by_key: dict[str, Entry]) -> dict[str, Transfer]:
    """The transfers that exist already under these keys; each must be for the same request."""
    posted = {t.idempotency_key: t for t in Transfer.objects.filter(idempotency_key__in=entries_by_key)}
    for key, transfer in posted.items():
        if transfer.asked != entries_by_key[key].asked:
            raise IdempotencyConflict(key)
    return posted


def _refuse_overdraft(accounts: dict[str, Account], changes: dict[str, int]) -> None:
    """Say which balance is short, and by how much; the constraint on the table is behind this, not instead of it."""
    for key, change in changes.items():
        balance_after = accounts[key].balance_microusd + change
        kind = Account.Kind(accounts[key].kind)
        if balance_after < 0 and kind != Account.Kind.SOURCE:
            place = _PLACES.get(kind, "account")
            raise InsufficientFunds(place=place, missing_microusd=-balance_after)


def _transfers_write(entries: list[Entry], accounts: dict[str, Account]) -> dict[str, Transfer]:
    transfers = {
        entry.idempotency_key: Transfer(
            idempotency_key=entry.idempotency_key,
            reason=entry.reason,
            asked=entry.asked,
            memo=entry.memo,
            operator_id=entry.operator_id,
        )
        for entry in entries
    }
    try:
        with transaction.atomic():
            Transfer.objects.bulk_create(transfers.values())
    except IntegrityError as error:
        # The same request would have waited for our locks; so somebody used a key for other accounts just now.
        keys = Transfer.objects.filter(idempotency_key__in=transfers).values_list(
            "idempotency_key", flat=True
        )
        if not keys:
            raise
        raise IdempotencyConflict(keys[0]) from error
    Posting.objects.bulk_create(
        Posting(transfer=transfers[entry.idempotency_key], account=accounts[key], amount_microusd=amount)
        for entry in entries
        for key, amount in entry.lines.items()
    )
    return transfers


def _balances_move(changes: dict[int, int]) -> None:
    """Add each amount to its account, some hundred accounts a query."""
    ordered = sorted(changes.items())
    for start in range(0, len(ordered), ACCOUNTS_AN_UPDATE):
        chunk = ordered[start : start + ACCOUNTS_AN_UPDATE]
        change = Case(
            *(When(pk=pk, then=Value(amount)) for pk, amount in chunk), output_field=BigIntegerField()
        )
        Account.objects.filter(pk__in=[pk for pk, _ in chunk]).update(
            balance_microusd=F("balance_microusd") + change
        )
