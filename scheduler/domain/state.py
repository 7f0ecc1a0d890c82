"""The scheduler's memory: what is stored of runs under way, and what only the present process knows.

Entities are frozen and replaced as a whole. `State` keeps them by id with the indexes that the decisions
need; its `persisted` part equals what `scheduler.store.load` reads from the database after every batch.
"""

from collections import defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from common.money import fee_microusd
from scheduler.domain.events import BlockReason
from scheduler.domain.fairness import Fairness
from scheduler.domain.limits import STORY_LENGTH
from scheduler.domain.spec import DataSlice, RunSpec
from scheduler.domain.transitions import LIVE, OPEN_RUN, LeasePhase, RoundPhase, RunPhase, ShardPhase


@dataclass(frozen=True, slots=True)
class RunState:
    spec: RunSpec
    params_sha256: str  # the newest parameters
    outer_state_sha256: str = ""
    phase: RunPhase = RunPhase.ACTIVE
    ended_because: str = ""
    ended_message: str = ""
    ended_at: datetime | None = None
    spent_microusd: int = 0
    charge_carry: int = 0  # see common.money.charge_with_carry
    epoch: int = 0  # how many times `pending_slices` has been filled
    pending_slices: tuple[int, ...] = ()
    waiting: str = ""
    waiting_bytes: int = 0  # the most that a connected device has of what every one has too little of

    @property
    def id(self) -> UUID:
        return self.spec.id

    @property
    def open(self) -> bool:
        """Whether it has not ended; one that is paused has not."""
        return self.phase in OPEN_RUN


@dataclass(frozen=True, slots=True)
class RoundState:
    id: UUID
    run_id: UUID
    index: int
    params_sha256: str
    outer_state_sha256: str
    opened_at: datetime
    phase: RoundPhase = RoundPhase.OPEN
    deadline_at: datetime | None = None
    closed_at: datetime | None = None
    training_loss: float | None = None
    validation_loss: float | None = None
    validation_metric: float | None = None


@dataclass(frozen=True, slots=True)
class ShardState:
    id: UUID
    run_id: UUID
    round_id: UUID
    index: int
    slice_index: int
    seed: int
    phase: ShardPhase = ShardPhase.PENDING
    attempts: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseState:
    id: UUID
    run_id: UUID
    round_id: UUID
    shard_id: UUID
    device_id: UUID
    owner_id: int
    device_class: str
    granted_at: datetime
    deadline_at: datetime
    expected_gpu_us: int
    rate_microusd: int
    fee_basis_points: int
    max_charge_microusd: int
    phase: LeasePhase = LeasePhase.GRANTED
    reason: str = ""
    step: int = 0
    ended_at: datetime | None = None
    delta_sha256: str = ""
    delta_bytes: int = 0
    delta_norm: float | None = None
    losses: tuple[float, ...] = ()
    reported_gpu_us: int = 0
    turnaround_us: int = 0
    metered_gpu_us: int = 0
    charge_microusd: int = 0

    @property
    def live(self) -> bool:
        return self.phase in LIVE

    @property
    def earned_microusd(self) -> int:
        """What an accepted result brings its owner."""
        return self.charge_microusd - fee_microusd(
            amount_microusd=self.charge_microusd, fee_basis_points=self.fee_basis_points
        )


@dataclass(frozen=True, slots=True)
class StandingState:
    device_id: UUID
    failures_in_a_row: int = 0
    benched_until: datetime | None = None
    pace: float = 1.0  # turnaround over expected time, learnt


@dataclass(frozen=True, slots=True)
class SpellState:
    """A device was connected, and `blocked` kept it from work (None: nothing did); `scheduler.domain.spells`."""

    id: UUID
    device_id: UUID
    blocked: BlockReason | None
    began_at: datetime
    ended_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class DeviceState:
    """A connected device; nothing of it outlives its socket."""

    id: UUID
    session_id: str
    owner_id: int
    device_class: str
    speed_factor: float
    memory_bytes: int  # 0: unknown
    max_buffer_bytes: int  # 0: unknown
    blocked: BlockReason | None
    cached: frozenset[str]
    leaving: bool = False  # it has said that it shuts down


@dataclass(frozen=True, slots=True)
class Asked:
    """When something was last asked of the world, and how often: a lease sent, a check or an outer step begun."""

    at: datetime
    times: int = 1


@dataclass(frozen=True, slots=True)
class ResumeBy:
    """Until when a device may come back to its lease; `blamed` unless it was the server that went away."""

    at: datetime
    blamed: bool


Entity = RunState | RoundState | ShardState | LeaseState


class Index:
    """Groups ids under a key, in the order they were added."""

    def __init__(self) -> None:
        self._members: defaultdict[UUID, dict[UUID, None]] = defaultdict(dict)

    def add(self, key: UUID, member: UUID) -> None:
        self._members[key][member] = None

    def discard(self, key: UUID, member: UUID) -> None:
        members = self._members.get(key)
        if members is not None:
            members.pop(member, None)
            if not members:
                del self._members[key]

    def of(self, key: UUID) -> tuple[UUID, ...]:
        return tuple(self._members.get(key, ()))

    def drop(self, key: UUID) -> None:
        self._members.pop(key, None)


@dataclass
class State:
    runs: dict[UUID, RunState] = field(default_factory=dict)
    rounds: dict[UUID, RoundState] = field(default_factory=dict)
    shards: dict[UUID, ShardState] = field(default_factory=dict)
    leases: dict[UUID, LeaseState] = field(default_factory=dict)
    standings: dict[UUID, StandingState] = field(default_factory=dict)

    spells: dict[UUID, SpellState] = field(default_factory=dict)  # the open one of each device

    # Known to this process only; after a restart devices announce themselves and everything open is asked
    # anew.
    devices: dict[UUID, DeviceState] = field(default_factory=dict)
    ended_spells: dict[UUID, SpellState] = field(default_factory=dict)  # of late, by device
    unheard_since: datetime | None = None  # after a restart, until devices have had time to come back
    asked: dict[UUID, Asked] = field(default_factory=dict)
    resume_by: dict[UUID, ResumeBy] = field(default_factory=dict)
    moved_at: dict[UUID, datetime] = field(default_factory=dict)  # when a lease last made a step
    too_big: set[tuple[UUID, UUID]] = field(default_factory=set)  # (device, run) that does not fit it
    fairness: Fairness = field(default_factory=Fairness)
    stories: dict[UUID, deque[str]] = field(default_factory=dict)
    past: dict[UUID, LeaseState] = field(default_factory=dict)  # of closed rounds, recalled for one batch

    # Indexes.
    current_round: dict[UUID, UUID] = field(default_factory=dict)  # of a run
    shards_of_round: Index = field(default_factory=Index)
    leases_of_shard: Index = field(default_factory=Index)
    live_leases_of_run: Index = field(default_factory=Index)
    live_leases_of_device: Index = field(default_factory=Index)

    def get(self, entity_id: UUID) -> Entity | None:
        tables: tuple[Mapping[UUID, Entity], ...] = (self.leases, self.shards, self.rounds, self.runs)
        return next((table[entity_id] for table in tables if entity_id in table), None)

    def put(self, entity: Entity) -> None:
        """Keep an entity and the indexes over it. Decisions go through `Turn`, which checks the transition."""
        if isinstance(entity, RunState):
            self.runs[entity.id] = entity
        elif isinstance(entity, RoundState):
            self.rounds[entity.id] = entity
            if entity.phase is RoundPhase.CLOSED:
                self.current_round.pop(entity.run_id, None)
            else:
                self.current_round[entity.run_id] = entity.id
        elif isinstance(entity, ShardState):
            self.shards[entity.id] = entity
            self.shards_of_round.add(entity.round_id, entity.id)
        else:
            self._put_lease(entity)

    def _put_lease(self, lease: LeaseState) -> None:
        self.leases[lease.id] = lease
        self.leases_of_shard.add(lease.shard_id, lease.id)
        if lease.live:
            self.live_leases_of_run.add(lease.run_id, lease.id)
            self.live_leases_of_device.add(lease.device_id, lease.id)
        else:
            self.live_leases_of_run.discard(lease.run_id, lease.id)
            self.live_leases_of_device.discard(lease.device_id, lease.id)
            self.resume_by.pop(lease.id, None)
            self.asked.pop(lease.id, None)
            self.moved_at.pop(lease.id, None)

    # ---- reads that several decisions share ----------------------------------------------------------------

    def shards_in(self, round_id: UUID) -> list[ShardState]:
        return [self.shards[i] for i in self.shards_of_round.of(round_id)]

    def leases_on(self, shard_id: UUID) -> list[LeaseState]:
        return [self.leases[i] for i in self.leases_of_shard.of(shard_id)]

    def leases_in(self, round_id: UUID) -> list[LeaseState]:
        return [lease for shard in self.shards_in(round_id) for lease in self.leases_on(shard.id)]

    def live_in(self, run_id: UUID) -> list[LeaseState]:
        return [self.leases[i] for i in self.live_leases_of_run.of(run_id)]

    def live_on(self, device_id: UUID) -> list[LeaseState]:
        return [self.leases[i] for i in self.live_leases_of_device.of(device_id)]

    def standing(self, device_id: UUID) -> StandingState:
        return self.standings.get(device_id) or StandingState(device_id)

    def lease(self, lease_id: UUID) -> LeaseState | None:
        return self.leases.get(lease_id) or self.past.get(lease_id)

    def session(self, device_id: UUID) -> str | None:
        device = self.devices.get(device_id)
        return device.session_id if device else None

    def budget_left(self, run: RunState) -> int:
        """Micro-USD that no accepted or live lease has a claim on."""
        reserved = sum(lease.max_charge_microusd for lease in self.live_in(run.id))
        return run.spec.budget_microusd - run.spent_microusd - reserved

    def slice_of(self, shard: ShardState) -> DataSlice:
        return self.runs[shard.run_id].spec.slices[shard.slice_index]

    def story(self, entity_id: UUID) -> deque[str]:
        return self.stories.setdefault(entity_id, deque(maxlen=STORY_LENGTH))

    # ---- forgetting ----------------------------------------------------------------------------------------

    def forget_finished(self) -> None:
        """Let go of ended runs and closed rounds; their rows remain, and are recalled when an event names them."""
        self.past.clear()
        for round_ in [r for r in self.rounds.values() if r.phase is RoundPhase.CLOSED]:
            self._forget_round(round_)
        for run in [r for r in self.runs.values() if not r.open]:
            del self.runs[run.id]
            self.stories.pop(run.id, None)
            self.too_big = {pair for pair in self.too_big if pair[1] != run.id}

    def _forget_round(self, round_: RoundState) -> None:
        for shard in self.shards_in(round_.id):
            for lease in self.leases_on(shard.id):
                del self.leases[lease.id]
                self.stories.pop(lease.id, None)
            self.leases_of_shard.drop(shard.id)
            del self.shards[shard.id]
            self.stories.pop(shard.id, None)
        self.shards_of_round.drop(round_.id)
        del self.rounds[round_.id]
        self.asked.pop(round_.id, None)
        self.stories.pop(round_.id, None)

    def persisted(self) -> dict[str, dict[UUID, Any]]:
        return {
            "runs": self.runs,
            "rounds": self.rounds,
            "shards": self.shards,
            "leases": self.leases,
            "standings": self.standings,
            "spells": self.spells,
        }
