"""A transfer before it is posted: which accounts it moves money between, and what was asked for.

Accounts are named by their keys (`wallet:7`), so that an entry can be made and judged without a database.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from billing.domain.amounts import check_amount
from billing.errors import IdempotencyConflict, KeyInvalid
from common.money import fee_microusd

SOURCE_KEY = "source:grants"
FEES_KEY = "fees"
KEY_MAX_CHARS = 120
REFERENCE_MAX_CHARS = 80
MEMO_MAX_CHARS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """What a hold pays to one owner. The platform's fee comes out of `amount_microusd`."""

    idempotency_key: str
    owner_id: int
    amount_microusd: int
    device_id: UUID | None = None  # for the owner's earnings by device; no part of the request


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """`lines` maps account keys to amounts and sums to zero.

    `asked` is the request in words. A repeat of the same request is recognised by it even when it would be split
    differently today, because the platform's fee has changed since.
    """

    idempotency_key: str
    reason: str
    asked: str
    lines: dict[str, int]
    memo: str = ""
    operator_id: int | None = None

    def __post_init__(self) -> None:
        if sum(self.lines.values()) != 0:
            raise AssertionError(f"transfer {self.idempotency_key} does not sum to zero: {self.lines}")


def wallet_key(user_id: int) -> str:
    return f"wallet:{user_id}"


def earnings_key(user_id: int) -> str:
    return f"earnings:{user_id}"


def grant_entry(
    *, user_id: int, amount_microusd: int, operator_id: int, idempotency_key: str, memo: str
) -> Entry:
    check_amount(amount_microusd)
    check_key(idempotency_key)
    return Entry(
        idempotency_key=idempotency_key,
        reason="grant",
        asked=f"grant {amount_microusd} to {wallet_key(user_id)}",
        lines={SOURCE_KEY: -amount_microusd, wallet_key(user_id): amount_microusd},
        memo=memo[:MEMO_MAX_CHARS],
        operator_id=operator_id,
    )


def adjustment_entry(
    *, adjustment_id: UUID, from_key: str, to_key: str, amount_microusd: int, operator_id: int, reason: str
) -> Entry:
    return Entry(
        idempotency_key=f"adjustment:{adjustment_id}",
        reason="adjustment",
        asked=f"adjust {amount_microusd} from {from_key} to {to_key}",
        lines={from_key: -amount_microusd, to_key: amount_microusd},
        memo=reason[:MEMO_MAX_CHARS],
        operator_id=operator_id,
    )


def adjustable(key: str) -> bool:
    """Whether an adjustment may touch this account. What is held or in transit belongs to a job, refund or payout."""
    kind, _, rest = key.partition(":")
    owned = kind in ("wallet", "earnings") and re.fullmatch("0|[1-9][0-9]{0,17}", rest) is not None
    return owned or key in (FEES_KEY, SOURCE_KEY, "source:stripe", "source:chargebacks")


def hold_entry(*, wallet: str, hold_key: str, reference: str, amount_microusd: int) -> Entry:
    return Entry(
        idempotency_key=f"hold:{reference}",
        reason="hold",
        asked=f"hold {amount_microusd} of {wallet}",
        lines={wallet: -amount_microusd, hold_key: amount_microusd},
    )


def charge_entry(charge: Charge, *, hold_key: str, fee_basis_points: int, memo: str) -> Entry:
    check_amount(charge.amount_microusd)
    check_key(charge.idempotency_key)
    fee = fee_microusd(amount_microusd=charge.amount_microusd, fee_basis_points=fee_basis_points)
    lines = {
        hold_key: -charge.amount_microusd,
        earnings_key(charge.owner_id): charge.amount_microusd - fee,
        FEES_KEY: fee,
    }
    return Entry(
        idempotency_key=charge.idempotency_key,
        reason="charge",
        asked=f"charge {charge.amount_microusd} of {hold_key} for {earnings_key(charge.owner_id)}",
        lines={key: amount for key, amount in lines.items() if amount},
        memo=memo[:MEMO_MAX_CHARS],
    )


def release_entry(*, wallet: str, hold_key: str, reference: str, amount_microusd: int) -> Entry:
    return Entry(
        idempotency_key=f"release:{reference}",
        reason="release",
        asked=f"release {hold_key}",
        lines={hold_key: -amount_microusd, wallet: amount_microusd},
    )


def entries_once(entries: Iterable[Entry]) -> list[Entry]:
    """The entries with repeats inside the batch left out; the same key for two requests is a conflict."""
    by_key: dict[str, Entry] = {}
    for entry in entries:
        if by_key.setdefault(entry.idempotency_key, entry).asked != entry.asked:
            raise IdempotencyConflict(entry.idempotency_key)
    return list(by_key.values())


def net_changes(entries: Iterable[Entry]) -> dict[str, int]:
    """What the entries together add to each account."""
    changes: dict[str, int] = {}
    for entry in entries:
        for key, amount in entry.lines.items():
            changes[key] = changes.get(key, 0) + amount
    return changes


def check_key(key: str, *, field: str = "idempotency_key", max_chars: int = KEY_MAX_CHARS) -> None:
    if not 0 < len(key) <= max_chars or "\x00" in key:
        raise KeyInvalid(
            f"{field} must have from 1 to {max_chars} characters, none of them NUL, and has {len(key)}.",
            field=field,
        )
