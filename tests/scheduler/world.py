"""A small world for the state machine: three devices, a clock that tests turn, ids that count up.

The cast: Ada's phone, Bo's phone and Cy's laptop, of one class unless a test says otherwise; buyers 1 and 2.
"""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import NAMESPACE_DNS, UUID, uuid5

from scheduler.domain import events as ev
from scheduler.domain import instructions as ins
from scheduler.domain import machine
from scheduler.domain.spec import DataSlice, RunSpec
from scheduler.domain.state import LeaseState, RoundState, RunState, ShardState, State
from scheduler.domain.transitions import LIVE, LeasePhase
from scheduler.domain.turn import News, Outcome

START = datetime(2026, 12, 1, 22, 0, tzinfo=UTC)
ADA, BO, CY = (uuid5(NAMESPACE_DNS, name) for name in ("ada", "bo", "cy"))
LOSSES = (0.9, 0.8)


def sha(name: object) -> str:
    return uuid5(NAMESPACE_DNS, str(name)).hex * 2


def spec(**changes: Any) -> RunSpec:
    """Three shards a round over three slices; one shard should take a device 1 s and costs at most 1.5 cents."""
    base = RunSpec(
        id=uuid5(NAMESPACE_DNS, "run"),
        buyer_id=1,
        program_sha256=sha("program"),
        forward_sha256=sha("forward"),
        validation_sha256=sha("validation"),
        initial_params_sha256=sha("params 0"),
        slices=tuple(DataSlice(sha(f"slice {i}"), rows=64, bytes=10_000) for i in range(3)),
        seed=7,
        local_steps=2,
        batch_size=32,
        learning_rate=0.1,
        shards_per_round=3,
        rounds_planned=2,
        metric="accuracy",
        step_flops=30e9,
        step_bytes=0.0,
        step_dispatches=0,
        memory_bytes=1_000_000,
        rates={"laptop-cpu": 10_000},
        fee_basis_points=0,
        budget_microusd=1_000_000,
    )
    return replace(base, **changes)


class World:
    def __init__(self) -> None:
        self.state = State()
        self.now = START
        self.outcome = Outcome()  # of the last turn
        self.news: list[News] = []
        self.ids = 0

    def new_id(self) -> UUID:
        self.ids += 1
        return UUID(int=self.ids)

    # ---- time and events -----------------------------------------------------------------------------------------

    def send(self, *events: ev.Event) -> Outcome:
        self.outcome = machine.step(self.state, events, now=self.now, new_id=self.new_id)
        self.news += self.outcome.news
        return self.outcome

    def pass_time(self, seconds: float) -> Outcome:
        self.now += timedelta(seconds=seconds)
        return self.send(ev.Tick())

    def add_run(self, run_spec: RunSpec | None = None, **changes: Any) -> RunSpec:
        added = run_spec or spec(**changes)
        self.state.put(RunState(added, params_sha256=added.initial_params_sha256))
        self.send(ev.RunAdded(added.id))
        return added

    def connect(self, *devices: UUID, **changes: Any) -> Outcome:
        return self.send(*(connected(device, **changes) for device in devices))

    def disconnect(self, device: UUID, session_id: str | None = None) -> Outcome:
        return self.send(ev.DeviceDisconnected(device, session_id or f"socket of {device}"))

    def report(self, lease: LeaseState, *, device: UUID | None = None, gpu_us: int = 1_000_000) -> Outcome:
        return self.send(
            ev.ResultReported(
                device_id=device or lease.device_id,
                lease_id=lease.id,
                delta_sha256=sha(f"delta {lease.id}"),
                delta_bytes=100,
                gpu_us=gpu_us,
                steps=2,
                losses=LOSSES,
            )
        )

    def check(self, lease: LeaseState, refusal: str | None = None) -> Outcome:
        return self.send(ev.ResultChecked(lease.id, refusal, delta_norm=1.0))

    def finish(self, device: UUID) -> LeaseState:
        """The device reports the lease it has, and the result is accepted."""
        lease = self.lease_of(device)
        self.report(lease)
        self.check(lease)
        return lease

    def hand_back(self, device: UUID, reason: ev.HandbackReason) -> Outcome:
        return self.send(ev.LeaseHandedBack(device, self.lease_of(device).id, reason))

    def aggregate(self, run: RunSpec, *, metric: float = 0.5) -> Outcome:
        index = self.round_of(run).index
        return self.send(
            ev.RoundAggregated(
                run.id, index, sha(f"params {index + 1}"), sha(f"outer {index + 1}"), 0.4, metric
            )
        )

    # ---- looks ---------------------------------------------------------------------------------------------------

    def has_lease(self, device: UUID) -> bool:
        return any(lease.device_id == device and lease.phase in LIVE for lease in self.state.leases.values())

    def lease_of(self, device: UUID) -> LeaseState:
        (lease,) = (i for i in self.state.leases.values() if i.device_id == device and i.phase in LIVE)
        return lease

    def now_lease(self, lease: LeaseState) -> LeaseState:
        return self.state.leases[lease.id]

    def round_of(self, run: RunSpec) -> RoundState:
        return self.state.rounds[self.state.current_round[run.id]]

    def shards_of(self, run: RunSpec) -> list[ShardState]:
        return self.state.shards_in(self.round_of(run).id)

    def sent(self, kind: type[Any]) -> list[Any]:
        """The instructions of one kind in the last turn."""
        return [instruction for instruction in self.outcome.instructions if isinstance(instruction, kind)]

    def revoked(self) -> list[tuple[UUID, str]]:
        return [(i.lease_id, i.reason) for i in self.sent(ins.SendRevoke)]

    def refusals(self) -> list[str | None]:
        return [ack.refusal for ack in self.sent(ins.SendAck)]


def connected(device: UUID, **changes: Any) -> ev.DeviceConnected:
    event = ev.DeviceConnected(
        device_id=device,
        session_id=f"socket of {device}",
        owner_id=device.int % 1000,
        device_class="laptop-cpu",
        speed_factor=1.0,
        memory_bytes=8_000_000,
        max_buffer_bytes=0,
        blocked=None,
    )
    return replace(event, **changes)


def started(*devices: UUID, **changes: Any) -> tuple[World, RunSpec]:
    """A world with one run and connected devices, each with a lease if there is a shard for it."""
    world = World()
    run = world.add_run(**changes)
    world.connect(*(devices or (ADA, BO, CY)))
    return world, run


__all__ = ["ADA", "BO", "CY", "LOSSES", "START", "LeasePhase", "World", "connected", "sha", "spec", "started"]
