"""Pairs every movement of our balance at Stripe with a transfer of the ledger.

Stripe's side is its list of balance transactions; ours is the postings of `source:stripe`. Both are named by the
ledger's idempotency key, which follows from the object that the money moved for. What Stripe moves for itself (its
fees, payouts to the platform's own bank) is outside the books, and counted.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from billing.domain.amounts import MICROUSD_PER_CENT
from billing.domain.stripe_entries import STRIPE_KEY
from billing.gateway.client import Json
from billing.models import Payout, Posting, Refund, TopUp

# Events may be late: what Stripe moved within the last hour need not be in the books yet. And the books are later
# than Stripe, so what they have since `since`, Stripe may have had a little before.
LATE = timedelta(hours=1)
EARLIER = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class Movement:
    """One movement of our balance at Stripe; `ledger_key` is empty where the books know no such object."""

    stripe_id: str
    kind: str
    at: datetime
    amount_microusd: int
    ledger_key: str


@dataclass(frozen=True, slots=True)
class Mismatch:
    """What the two sides say of one movement; None where a side says nothing."""

    ledger_key: str
    stripe_id: str
    kind: str
    stripe_microusd: int | None
    ledger_microusd: int | None
    at: datetime


@dataclass(frozen=True, slots=True)
class Reconciliation:
    paired: int
    outside: int
    mismatches: tuple[Mismatch, ...]


def reconcile(transactions: Iterable[Json], *, since: datetime, now: datetime) -> Reconciliation:
    """Compare both sides. `transactions` are Stripe's since `since` less `EARLIER`, with their sources."""
    ours = _ledger_side(since - EARLIER)
    paired, outside = set(), 0
    mismatches = []
    for transaction in transactions:
        finder = _FINDERS.get(transaction["type"])
        if finder is None:
            outside += 1
            continue
        movement = _movement(transaction, finder)
        found, _ = ours.get(movement.ledger_key, (None, now))
        if found is not None:
            paired.add(movement.ledger_key)
        if found != movement.amount_microusd and since <= movement.at <= now - LATE:
            mismatches.append(
                Mismatch(
                    movement.ledger_key,
                    movement.stripe_id,
                    movement.kind,
                    movement.amount_microusd,
                    found,
                    movement.at,
                )
            )
    alone = [
        Mismatch(key, "", key.partition(":")[0], None, amount, at)
        for key, (amount, at) in _ledger_side(since).items()
        if key not in paired
    ]
    return Reconciliation(paired=len(paired), outside=outside, mismatches=(*mismatches, *alone))


def _ledger_side(since: datetime) -> dict[str, tuple[int, datetime]]:
    """What the books say that our balance at Stripe gained, and when, by idempotency key."""
    rows = (
        Posting.objects.filter(account__key=STRIPE_KEY, transfer__created_at__gte=since)
        # What corrected an unmatched movement belongs to that one, which is listed as resolved.
        .filter(transfer__adjustment__unmatched=None)
        .values_list("transfer__idempotency_key", "amount_microusd", "transfer__created_at")
    )
    return {key: (-amount, at) for key, amount, at in rows}


def _movement(transaction: Json, finder: Callable[[Json], str]) -> Movement:
    return Movement(
        stripe_id=transaction["id"],
        kind=transaction["type"],
        at=datetime.fromtimestamp(transaction["created"], tz=UTC),
        amount_microusd=transaction["amount"] * MICROUSD_PER_CENT,
        ledger_key=finder(transaction),
    )


def _top_up(transaction: Json) -> str:
    pk = TopUp.objects.filter(payment_intent_id=transaction["source"]["payment_intent"] or "none")
    return _key("top_up", pk.values_list("pk", flat=True).first())


def _refund(prefix: str) -> Callable[[Json], str]:
    def find(transaction: Json) -> str:
        refunds = Refund.objects.filter(stripe_id=transaction["source"]["id"])
        return _key(prefix, refunds.values_list("pk", flat=True).first())

    return find


def _payout(transfer_id: str, prefix: str) -> str:
    payouts = Payout.objects.filter(transfer_id=transfer_id)
    return _key(prefix, payouts.values_list("pk", flat=True).first())


def _dispute(transaction: Json) -> str:
    prefix = "chargeback" if transaction["amount"] < 0 else "chargeback_returned"
    return f"{prefix}:{transaction['source']['id']}"


def _key(prefix: str, pk: object) -> str:
    return f"{prefix}:{pk}" if pk else ""


_FINDERS: dict[str, Callable[[Json], str]] = {
    "charge": _top_up,
    "payment": _top_up,
    "refund": _refund("refund_sent"),
    "payment_refund": _refund("refund_sent"),
    "refund_failure": _refund("refund_returned"),
    "payment_failure_refund": _refund("refund_returned"),
    "transfer": lambda transaction: _payout(transaction["source"]["id"], "payout_sent"),
    "transfer_refund": lambda transaction: _payout(transaction["source"]["transfer"], "payout_returned"),
    "transfer_cancel": lambda transaction: _payout(transaction["source"]["transfer"], "payout_returned"),
    "adjustment": _dispute,
}
