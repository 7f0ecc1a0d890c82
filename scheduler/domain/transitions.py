"""Which phase may follow which, for runs, rounds, shards and leases. Nothing else changes a phase."""

from collections.abc import Iterable
from enum import StrEnum
from typing import TypeVar

from scheduler.errors import InvalidTransition


class RunPhase(StrEnum):
    ACTIVE = "active"
    PAUSED = "paused"
    FINISHED = "finished"
    CANCELLED = "cancelled"
    FAILED = "failed"


class RoundPhase(StrEnum):
    OPEN = "open"
    AGGREGATING = "aggregating"
    CLOSED = "closed"


class ShardPhase(StrEnum):
    PENDING = "pending"
    LEASED = "leased"
    DONE = "done"
    DROPPED = "dropped"


class LeasePhase(StrEnum):
    GRANTED = "granted"
    RUNNING = "running"
    REPORTED = "reported"
    ACCEPTED = "accepted"
    REFUSED = "refused"
    HANDED_BACK = "handed_back"
    EXPIRED = "expired"
    REVOKED = "revoked"


Phase = TypeVar("Phase", RunPhase, RoundPhase, ShardPhase, LeasePhase)

_RUN_ENDS = frozenset({RunPhase.FINISHED, RunPhase.CANCELLED, RunPhase.FAILED})
RUN: dict[RunPhase, frozenset[RunPhase]] = {
    RunPhase.ACTIVE: _RUN_ENDS | {RunPhase.PAUSED},
    # Work that was leased before goes on, so that it may end too.
    RunPhase.PAUSED: _RUN_ENDS | {RunPhase.ACTIVE},
    RunPhase.FINISHED: frozenset(),
    RunPhase.CANCELLED: frozenset(),
    RunPhase.FAILED: frozenset(),
}
ROUND: dict[RoundPhase, frozenset[RoundPhase]] = {
    # Straight to closed: its run ended.
    RoundPhase.OPEN: frozenset({RoundPhase.AGGREGATING, RoundPhase.CLOSED}),
    RoundPhase.AGGREGATING: frozenset({RoundPhase.CLOSED}),
    RoundPhase.CLOSED: frozenset(),
}
SHARD: dict[ShardPhase, frozenset[ShardPhase]] = {
    ShardPhase.PENDING: frozenset({ShardPhase.LEASED, ShardPhase.DROPPED}),
    ShardPhase.LEASED: frozenset({ShardPhase.PENDING, ShardPhase.DONE, ShardPhase.DROPPED}),
    ShardPhase.DONE: frozenset(),
    ShardPhase.DROPPED: frozenset(),
}
_LEASE_ENDS_EARLY = frozenset({LeasePhase.HANDED_BACK, LeasePhase.EXPIRED, LeasePhase.REVOKED})
LEASE: dict[LeasePhase, frozenset[LeasePhase]] = {
    LeasePhase.GRANTED: _LEASE_ENDS_EARLY | {LeasePhase.RUNNING, LeasePhase.REPORTED},
    LeasePhase.RUNNING: _LEASE_ENDS_EARLY | {LeasePhase.REPORTED},
    LeasePhase.REPORTED: frozenset({LeasePhase.ACCEPTED, LeasePhase.REFUSED, LeasePhase.REVOKED}),
    # Its device came back while the shard still needs it.
    LeasePhase.EXPIRED: frozenset({LeasePhase.RUNNING, LeasePhase.REPORTED}),
    LeasePhase.ACCEPTED: frozenset(),
    LeasePhase.REFUSED: frozenset(),
    LeasePhase.HANDED_BACK: frozenset(),
    LeasePhase.REVOKED: frozenset(),
}

# A run that has not ended: its rows are in memory, its results are taken, its rounds close.
OPEN_RUN = frozenset({RunPhase.ACTIVE, RunPhase.PAUSED})
# A live lease occupies its device and reserves money; one under way can still be taken from its device.
LIVE = frozenset({LeasePhase.GRANTED, LeasePhase.RUNNING, LeasePhase.REPORTED})
UNDER_WAY = frozenset({LeasePhase.GRANTED, LeasePhase.RUNNING})


def check(
    table: dict[Phase, frozenset[Phase]], *, what: str, before: Phase, after: Phase, story: Iterable[str]
) -> None:
    """Raise InvalidTransition, telling what lately happened to `what`, unless the table allows the step."""
    if after not in table[before]:
        told = "; ".join(story) or "nothing since it was loaded"
        raise InvalidTransition(f"{what} cannot go from {before} to {after}. Its story: {told}.")
