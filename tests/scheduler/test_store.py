"""Whatever happens, the rows say the same as the memory; a state loaded anew is the state that was saved."""

from collections.abc import Callable
from datetime import timedelta
from itertools import pairwise
from uuid import UUID

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from scheduler import store
from scheduler.domain import events as ev
from scheduler.domain import machine
from scheduler.domain.spec import DataSlice, RunSpec
from scheduler.domain.state import LeaseState
from scheduler.domain.transitions import LeasePhase, RunPhase
from scheduler.models import Lease, Run, RunNews, Spell, Standing
from scheduler.services import run_start

from .world import ADA, BO, CY, LOSSES, World, connected, sha, spec

pytestmark = pytest.mark.django_db

HANDBACKS = ("shutdown", "blocked", "busy", "too_big", "out_of_memory", "error")
REFUSALS = (None, None, None, "delta_norm")


def test_a_specification_survives_its_row():
    run = spec(target_metric=0.9)
    run_start(spec=run)
    assert store.spec_from_row(Run.objects.get()) == run


class RandomFleet(RuleBasedStateMachine):
    """Random batches of every event, valid or not, over a world whose every turn is stored."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.runs: list[RunSpec] = []
        self.accepted: dict[UUID, LeaseState] = {}
        self.leases_when_paused: dict[UUID, set[UUID]] = {}

    @initialize()
    def start(self) -> None:
        for model in (Run, Standing, RunNews, Spell):
            model.objects.all().delete()
        self.add_run(shards=3, budget_microusd=400_000)
        self.turn(*(connected(device) for device in (ADA, BO, CY)))

    @rule(shards=st.integers(1, 4), budget_microusd=st.integers(20_000, 400_000))
    def add_run(self, shards: int, budget_microusd: int) -> None:
        if len(self.runs) == 3:
            return
        run = spec(
            id=self.world.new_id(),
            buyer_id=len(self.runs) % 2,
            shards_per_round=shards,
            rounds_planned=3,
            budget_microusd=budget_microusd,
            slices=tuple(DataSlice(sha(i), 64, 100) for i in range(4)),
        )
        self.runs.append(run)
        run_start(spec=run)
        self.turn(ev.RunAdded(run.id))

    @rule(device=st.sampled_from([ADA, BO, CY]), speed=st.sampled_from([0.5, 1.0, 3.0]), resume=st.booleans())
    def connect(self, device: UUID, speed: float, resume: bool) -> None:
        resumed = tuple(lease.id for lease in self.leases() if lease.device_id == device) if resume else ()
        self.turn(connected(device, speed_factor=speed, session_id=str(self.world.new_id()), resumed=resumed))

    @rule(device=st.sampled_from([ADA, BO, CY]))
    def disconnect(self, device: UUID) -> None:
        self.turn(ev.DeviceDisconnected(device, self.world.state.session(device) or "none"))

    @rule(device=st.sampled_from([ADA, BO, CY]), reason=st.sampled_from([None, None, "too_hot"]))
    def block(self, device: UUID, reason: ev.BlockReason | None) -> None:
        self.turn(ev.DeviceBlocked(device, reason))

    @rule(data=st.data(), step=st.integers(0, 2))
    def progress(self, data: st.DataObject, step: int) -> None:
        self.with_lease(data, lambda lease: ev.LeaseProgress(lease.device_id, lease.id, step))

    @rule(data=st.data(), reason=st.sampled_from(HANDBACKS))
    def hand_back(self, data: st.DataObject, reason: ev.HandbackReason) -> None:
        self.with_lease(data, lambda lease: ev.LeaseHandedBack(lease.device_id, lease.id, reason))

    @rule(data=st.data(), device=st.sampled_from([None, None, None, ADA]))
    def report(self, data: st.DataObject, device: UUID | None) -> None:
        self.with_lease(
            data,
            lambda lease: ev.ResultReported(
                device or lease.device_id, lease.id, sha(lease.id), 10, 900_000, 2, LOSSES
            ),
        )

    @rule(data=st.data(), refusal=st.sampled_from(REFUSALS))
    def check(self, data: st.DataObject, refusal: str | None) -> None:
        self.with_lease(data, lambda lease: ev.ResultChecked(lease.id, refusal, 1.5))

    @rule(data=st.data(), refusal=st.sampled_from(REFUSALS), seconds=st.integers(0, 2))
    def finish(self, data: st.DataObject, refusal: str | None, seconds: int) -> None:
        """What mostly happens: a live lease is reported and checked, and complete rounds are aggregated."""
        live = [lease for lease in self.world.state.leases.values() if lease.live]
        if live:
            lease = data.draw(st.sampled_from(live))
            self.world.now += timedelta(seconds=seconds)
            self.turn(
                ev.ResultReported(lease.device_id, lease.id, sha(lease.id), 10, 900_000, 2, LOSSES),
                ev.ResultChecked(lease.id, refusal, 1.5),
                ev.Tick(),
            )
        self.aggregate()

    @rule()
    def aggregate(self) -> None:
        for round_ in list(self.world.state.rounds.values()):
            params, outer = sha(self.world.new_id()), sha(self.world.new_id())
            self.turn(ev.RoundAggregated(round_.run_id, round_.index, params, outer, 0.3, 0.5))

    @rule(seconds=st.sampled_from([0.1, 3, 25, 70]))
    def wait(self, seconds: float) -> None:
        self.world.now += timedelta(seconds=seconds)
        self.turn(ev.Tick())

    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        if data.draw(st.integers(0, 9)) == 0:
            self.turn(ev.RunCancelled(data.draw(st.sampled_from(self.runs)).id))

    @rule(data=st.data(), pause=st.booleans())
    def pause_or_resume(self, data: st.DataObject, pause: bool) -> None:
        if self.runs:
            run = data.draw(st.sampled_from(self.runs))
            before = {lease.id for lease in self.world.state.live_in(run.id)}
            self.turn(ev.RunPaused(run.id) if pause else ev.RunResumed(run.id))
            if pause:
                assert {lease.id for lease in self.world.state.live_in(run.id)} <= before

    @invariant()
    def a_paused_run_gets_no_new_lease(self) -> None:
        for run in self.world.state.runs.values():
            leases = set(Lease.objects.filter(shard__round__run_id=run.id).values_list("pk", flat=True))
            known = self.leases_when_paused.get(run.id)
            if run.phase is not RunPhase.PAUSED:
                self.leases_when_paused.pop(run.id, None)
            elif known is None:
                self.leases_when_paused[run.id] = leases
            else:
                assert leases == known

    @rule()
    def restart(self) -> None:
        """The server is killed and started again."""
        self.world.state = store.load()
        store.save(machine.recover(self.world.state, now=self.world.now, new_id=self.world.new_id))

    @invariant()
    def rows_equal_memory(self) -> None:
        assert store.load().persisted() == self.world.state.persisted()

    @invariant()
    def a_device_has_one_lease_at_most(self) -> None:
        for device in (ADA, BO, CY):
            under_way = [i for i in self.world.state.live_on(device) if i.phase is not LeasePhase.REPORTED]
            assert len(under_way) <= 1

    @invariant()
    def the_spells_of_a_device_follow_each_other(self) -> None:
        for device in (ADA, BO, CY):
            spells = list(Spell.objects.filter(device_id=device).order_by("began_at", "ended_at"))
            for earlier, later in pairwise(spells):
                assert earlier.ended_at is not None
                assert earlier.ended_at <= later.began_at

    @invariant()
    def who_is_connected_has_an_open_spell(self) -> None:
        state = self.world.state
        for device_id, device in state.devices.items():
            assert state.spells[device_id].blocked == device.blocked

    @invariant()
    def nothing_is_spent_beyond_the_budget(self) -> None:
        for run in self.world.state.runs.values():
            assert self.world.state.budget_left(run) >= 0

    @invariant()
    def an_accepted_result_stays_and_is_charged_once(self) -> None:
        charges = {run.id: 0 for run in self.runs}
        for row in Lease.objects.filter(state="accepted").select_related("shard__round"):
            lease = store.lease_from_row(row)
            assert self.accepted.setdefault(lease.id, lease) == lease
            charges[lease.run_id] += lease.charge_microusd
        assert {run.pk: run.spent_microusd for run in Run.objects.all()} == charges

    def leases(self) -> list[LeaseState]:
        return [store.lease_from_row(row) for row in Lease.objects.select_related("shard__round")]

    def with_lease(self, data: st.DataObject, event: Callable[[LeaseState], ev.Event]) -> None:
        leases = self.leases()
        if leases:
            self.turn(event(data.draw(st.sampled_from(leases))))

    def turn(self, *batch: ev.Event) -> None:
        named = [event.lease_id for event in batch if hasattr(event, "lease_id")]
        resumed = [i for event in batch if isinstance(event, ev.DeviceConnected) for i in event.resumed]
        added = [event.run_id for event in batch if isinstance(event, ev.RunAdded)]
        store.recall(self.world.state, run_ids=added, lease_ids=named + resumed)
        store.save(self.world.send(*batch))


def test_after_every_turn_the_rows_equal_the_memory():
    run_state_machine_as_test(
        RandomFleet,
        settings=settings(
            max_examples=8,
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
