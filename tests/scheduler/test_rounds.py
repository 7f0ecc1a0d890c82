"""Rounds close by a quorum and the pace of arrivals, lose no data, and end their run."""

from collections import Counter
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.domain import instructions as ins
from scheduler.domain.events import RoundAggregated, RoundFailed, RunCancelled
from scheduler.domain.rounds import quorum_of, take_slices
from scheduler.domain.spec import DataSlice
from scheduler.domain.state import RunState
from scheduler.domain.transitions import LeasePhase, RoundPhase, ShardPhase
from scheduler.domain.turn import RoundClosed, RunEnded

from .world import ADA, BO, CY, World, sha, spec, started


def test_a_round_is_aggregated_when_all_its_shards_are_in():
    world, run = started()
    for device in (ADA, BO, CY):
        world.finish(device)
    assert world.round_of(run).phase is RoundPhase.AGGREGATING
    assert world.sent(ins.AggregateRound) == [ins.AggregateRound(run.id, 0)]


def test_the_next_round_starts_from_the_new_parameters():
    world, run = started()
    for device in (ADA, BO, CY):
        world.finish(device)
    world.aggregate(run)
    assert world.round_of(run).index == 1
    assert world.round_of(run).params_sha256 == sha("params 1")
    assert world.round_of(run).outer_state_sha256 == sha("outer 1")
    assert world.news == [RoundClosed(run.id, 0)]


def test_an_aggregation_told_twice_counts_once():
    world, run = started()
    for device in (ADA, BO, CY):
        world.finish(device)
    world.aggregate(run)
    before = world.state.persisted()["rounds"].copy()
    world.send(RoundAggregated(run.id, 0, sha("params 1"), sha("outer 1"), 0.4, 0.5))
    assert world.state.persisted()["rounds"] == before
    assert world.news == [RoundClosed(run.id, 0)]


def test_without_a_quorum_a_round_waits_however_long():
    world, run = started()
    world.finish(ADA)
    assert world.round_of(run).deadline_at is None


def test_the_deadline_follows_the_slowest_arrival_once_a_quorum_is_in():
    world, run = started()
    world.pass_time(4)
    world.finish(ADA)
    world.pass_time(4)
    world.finish(BO)
    deadline = world.round_of(run).deadline_at
    assert deadline is not None
    assert (deadline - world.now).total_seconds() == pytest.approx(1.5 * 8)


def test_quick_rounds_still_give_stragglers_two_seconds():
    world, run = started()
    world.finish(ADA)
    world.finish(BO)
    assert world.round_of(run).deadline_at == world.now + timedelta(seconds=2)


def test_at_its_deadline_a_round_closes_with_what_is_there():
    world, run = started()
    late = world.lease_of(CY)
    world.finish(ADA)
    world.finish(BO)
    world.pass_time(2)
    assert world.round_of(run).phase is RoundPhase.AGGREGATING
    assert (late.id, "superseded") in world.revoked()
    assert world.now_lease(late).phase is LeasePhase.REVOKED
    assert [shard.phase for shard in world.shards_of(run)].count(ShardPhase.DROPPED) == 1


def test_a_result_under_check_at_the_deadline_is_waited_for():
    world, run = started()
    world.finish(ADA)
    world.finish(BO)
    slow = world.lease_of(CY)
    world.report(slow)
    world.pass_time(3)
    assert world.round_of(run).phase is RoundPhase.OPEN
    world.check(slow)
    assert world.round_of(run).phase is RoundPhase.AGGREGATING
    assert world.now_lease(slow).phase is LeasePhase.ACCEPTED


def test_a_late_result_is_not_merged_into_any_round():
    world, _ = started()
    late = world.lease_of(CY)
    world.finish(ADA)
    world.finish(BO)
    world.pass_time(2)
    world.report(late)
    assert world.refusals() == ["late"]
    assert world.now_lease(late).phase is LeasePhase.REVOKED
    assert world.now_lease(late).charge_microusd == 0


def test_the_slice_of_a_dropped_shard_is_the_first_of_the_next_round():
    world, run = started(shards_per_round=3, slices=tuple(DataSlice(sha(i), 64, 100) for i in range(9)))
    dropped = world.state.shards[world.lease_of(CY).shard_id].slice_index
    world.finish(ADA)
    world.finish(BO)
    world.pass_time(2)
    world.aggregate(run)
    assert world.shards_of(run)[0].slice_index == dropped


def test_a_device_that_joins_late_joins_the_present_round_with_its_parameters():
    world, run = started(ADA)
    world.finish(ADA)
    world.finish(ADA)
    world.pass_time(2)
    world.aggregate(run)
    world.connect(BO)
    lease = world.lease_of(BO)
    assert world.state.rounds[lease.round_id].index == 1
    assert world.state.rounds[lease.round_id].params_sha256 == sha("params 1")


def test_a_run_ends_after_its_planned_rounds():
    world, run = started(rounds_planned=1)
    for device in (ADA, BO, CY):
        world.finish(device)
    world.aggregate(run)
    ended = world.outcome.changed.runs[run.id]
    assert (ended.phase, ended.ended_because) == ("finished", "epochs")
    assert ended.params_sha256 == sha("params 1")
    assert world.news == [RoundClosed(run.id, 0), RunEnded(run.id)]


@pytest.mark.parametrize(("metric", "target", "reached"), [("accuracy", 0.9, 0.95), ("loss", 0.2, 0.1)])
def test_a_run_ends_when_it_reaches_its_target(metric, target, reached):
    world, run = started(metric=metric, target_metric=target)
    for device in (ADA, BO, CY):
        world.finish(device)
    world.aggregate(run, metric=reached)
    assert world.outcome.changed.runs[run.id].ended_because == "target"


def test_a_diverged_round_fails_its_run_with_the_reason():
    world, run = started()
    for device in (ADA, BO, CY):
        world.finish(device)
    world.send(RoundFailed(run.id, 0, "diverged", "Lower the learning rate."))
    ended = world.outcome.changed.runs[run.id]
    assert (ended.phase, ended.ended_because) == ("failed", "diverged")
    assert ended.ended_message == "Lower the learning rate."


def test_a_cancelled_run_keeps_what_was_accepted_and_stops_the_rest():
    world, run = started()
    world.pass_time(1)
    paid = world.finish(ADA)
    running = world.lease_of(BO)
    world.send(RunCancelled(run.id))
    assert (running.id, "cancelled") in world.revoked()
    assert world.outcome.changed.runs[run.id].spent_microusd > 0
    assert world.outcome.changed.leases[running.id].charge_microusd == 0
    assert paid.id not in world.outcome.changed.leases
    assert world.news == [RunEnded(run.id)]
    assert not world.state.runs
    assert not world.state.leases


def test_an_outer_step_that_never_answers_is_asked_again_and_in_the_end_fails_the_run():
    world, run = started()
    for device in (ADA, BO, CY):
        world.finish(device)
    asked = 0
    while world.state.runs:
        world.pass_time(301)
        asked += len(world.sent(ins.AggregateRound))
    assert asked == 4
    assert world.outcome.changed.runs[run.id].ended_because == "aggregation_failed"


@pytest.mark.parametrize(("shards", "quorum"), [(1, 1), (2, 2), (3, 2), (4, 3), (5, 4), (6, 4), (9, 6)])
def test_a_quorum_is_two_thirds_rounded_up(shards, quorum):
    assert quorum_of(shards) == quorum


@given(
    slices=st.integers(1, 9),
    per_round=st.integers(1, 5),
    dropped=st.lists(st.sets(st.integers(0, 4)), min_size=1, max_size=40),
)
def test_no_slice_is_lost_or_trained_twice_in_an_epoch(slices, per_round, dropped):
    run = RunState(
        spec(slices=tuple(DataSlice(sha(i), 64, 100) for i in range(slices)), shards_per_round=per_round),
        params_sha256=sha("p"),
    )
    trained: Counter[int] = Counter()
    for drop in dropped:
        taken, pending, epoch = take_slices(run)
        assert len(taken) == len(set(taken)) == min(per_round, slices)
        lost = tuple(index for place, index in enumerate(taken) if place in drop)
        trained.update(index for place, index in enumerate(taken) if place not in drop)
        run = RunState(run.spec, run.params_sha256, pending_slices=lost + pending, epoch=epoch)
        waiting = Counter(run.pending_slices)
        assert all(trained[index] + waiting[index] == epoch for index in range(slices))


def test_an_epoch_takes_every_slice_in_an_order_of_its_own():
    big = spec(slices=tuple(DataSlice(sha(i), 64, 100) for i in range(20)))
    assert sorted(big.epoch_order(0)) == list(range(20))
    assert big.epoch_order(0) == big.epoch_order(0)
    assert big.epoch_order(0) != big.epoch_order(1)


def test_shards_of_a_round_have_seeds_of_their_own():
    world = World()
    run = world.add_run()
    assert len({shard.seed for shard in world.shards_of(run)}) == 3
