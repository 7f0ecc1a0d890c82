"""One turn of the state machine: the state, the time, and what the decisions of this turn change and ask for."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

from scheduler.domain import transitions as tr
from scheduler.domain.instructions import (
    AggregateRound,
    AnnounceDevice,
    CheckResult,
    CloseSession,
    Instruction,
    RefreshDevice,
    SendAck,
    SendLease,
    SendRevoke,
)
from scheduler.domain.state import (
    Asked,
    Entity,
    LeaseState,
    RoundState,
    RunState,
    ShardState,
    SpellState,
    StandingState,
    State,
)

E = TypeVar("E", RunState, RoundState, ShardState, LeaseState)
NewId = Callable[[], UUID]


@dataclass(frozen=True, slots=True)
class RoundClosed:
    """News for the buyer's side: a round has its next parameters."""

    run_id: UUID
    round_index: int


@dataclass(frozen=True, slots=True)
class RunEnded:
    run_id: UUID


News = RoundClosed | RunEnded


@dataclass(slots=True)
class Changed:
    """The newest version of everything that a turn touched."""

    runs: dict[UUID, RunState] = field(default_factory=dict)
    rounds: dict[UUID, RoundState] = field(default_factory=dict)
    shards: dict[UUID, ShardState] = field(default_factory=dict)
    leases: dict[UUID, LeaseState] = field(default_factory=dict)
    standings: dict[UUID, StandingState] = field(default_factory=dict)
    spells: dict[UUID, SpellState] = field(default_factory=dict)  # by their own ids


@dataclass(frozen=True, slots=True)
class BlobRelease:
    """A holder (see `blobs`) needs one of its blobs, or with no hash any of them, no more."""

    holder: str
    sha256: str | None = None


def lease_holder(lease_id: UUID) -> str:
    """Who holds an uploaded delta."""
    return f"lease:{lease_id}"


def run_holder(run_id: UUID) -> str:
    """Who holds the parameters and the outer optimizer's state of a run."""
    return f"run:{run_id}"


@dataclass(slots=True)
class Outcome:
    """What follows from a turn: rows to store, news to publish, then instructions to carry out."""

    instructions: list[Instruction] = field(default_factory=list)
    changed: Changed = field(default_factory=Changed)
    news: list[News] = field(default_factory=list)
    releases: list[BlobRelease] = field(default_factory=list)


@dataclass(slots=True)
class Turn:
    state: State
    now: datetime
    new_id: NewId
    outcome: Outcome = field(default_factory=Outcome)
    cause: str = ""  # the event at work, for the stories of entities

    # ---- changes -------------------------------------------------------------------------------------------

    def change(self, entity: E, **values: Any) -> E:
        """Replace fields of an entity; the tables must allow a change of phase."""
        return self.put(replace(entity, **values))

    def put(self, entity: E) -> E:
        before = self.state.get(entity.id)
        if before is None:
            self._tell(entity, str(entity.phase))
        elif before.phase != entity.phase:
            self._check(before, entity)
            self._tell(entity, f"{before.phase} to {entity.phase}")
        self.state.put(entity)
        self._record(entity)
        return entity

    def put_standing(self, standing: StandingState) -> None:
        self.state.standings[standing.device_id] = standing
        self.outcome.changed.standings[standing.device_id] = standing

    def put_spell(self, spell: SpellState) -> None:
        """`scheduler.domain.spells` decides; a device has one open spell, or none."""
        state = self.state
        if spell.ended_at is None:
            state.spells[spell.device_id] = spell
            state.ended_spells.pop(spell.device_id, None)
        else:
            state.spells.pop(spell.device_id, None)
            state.ended_spells[spell.device_id] = spell
        self.outcome.changed.spells[spell.id] = spell

    def _check(self, before: Entity, after: Entity) -> None:
        story = self.state.story(after.id)
        if isinstance(before, RunState) and isinstance(after, RunState):
            tr.check(tr.RUN, what=f"run {after.id}", before=before.phase, after=after.phase, story=story)
        elif isinstance(before, RoundState) and isinstance(after, RoundState):
            tr.check(tr.ROUND, what=f"round {after.id}", before=before.phase, after=after.phase, story=story)
        elif isinstance(before, ShardState) and isinstance(after, ShardState):
            tr.check(tr.SHARD, what=f"shard {after.id}", before=before.phase, after=after.phase, story=story)
        elif isinstance(before, LeaseState) and isinstance(after, LeaseState):
            tr.check(tr.LEASE, what=f"lease {after.id}", before=before.phase, after=after.phase, story=story)

    def _tell(self, entity: Entity, what: str) -> None:
        self.state.story(entity.id).append(f"{self.now:%H:%M:%S} {what} by {self.cause}")

    def _record(self, entity: Entity) -> None:
        changed = self.outcome.changed
        if isinstance(entity, RunState):
            changed.runs[entity.id] = entity
        elif isinstance(entity, RoundState):
            changed.rounds[entity.id] = entity
        elif isinstance(entity, ShardState):
            changed.shards[entity.id] = entity
        else:
            changed.leases[entity.id] = entity

    # ---- what is asked of the world ------------------------------------------------------------------------

    def send_lease(self, lease: LeaseState) -> None:
        """Give a lease to its device, again if need be; without a socket it is given when the device is back."""
        self._ask(lease.id)
        session_id = self.state.session(lease.device_id)
        if session_id is not None:
            self.outcome.instructions.append(SendLease(session_id, lease.id))

    def send_revoke(self, device_id: UUID, lease_id: UUID, reason: str) -> None:
        session_id = self.state.session(device_id)
        if session_id is not None:
            self.outcome.instructions.append(SendRevoke(session_id, lease_id, reason))

    def send_ack(
        self, device_id: UUID, lease_id: UUID, *, refusal: str | None, earned_microusd: int = 0
    ) -> None:
        session_id = self.state.session(device_id)
        if session_id is not None:
            self.outcome.instructions.append(SendAck(session_id, lease_id, refusal, earned_microusd))

    def close_session(self, session_id: str, reason: str) -> None:
        self.outcome.instructions.append(CloseSession(session_id, reason))

    def ask_to_announce(self, session_id: str) -> None:
        self.outcome.instructions.append(AnnounceDevice(session_id))

    def refresh(self, session_id: str) -> None:
        self.outcome.instructions.append(RefreshDevice(session_id))

    def ask_check(self, lease: LeaseState) -> None:
        self._ask(lease.id)
        self.outcome.instructions.append(CheckResult(lease.id))

    def ask_aggregation(self, round_: RoundState) -> None:
        self._ask(round_.id)
        self.outcome.instructions.append(AggregateRound(round_.run_id, round_.index))

    def _ask(self, entity_id: UUID) -> None:
        before = self.state.asked.get(entity_id)
        self.state.asked[entity_id] = Asked(self.now, before.times + 1 if before else 1)
