"""Only the tables allow a change of phase, and a forbidden one tells what happened before."""

import pytest

from scheduler import models
from scheduler.domain import events as ev
from scheduler.domain import transitions as tr
from scheduler.domain.turn import Turn
from scheduler.errors import InvalidTransition

from .world import ADA, started


@pytest.mark.parametrize(
    ("phases", "stored"),
    [
        (tr.RunPhase, models.Run.State),
        (tr.RoundPhase, models.Round.State),
        (tr.ShardPhase, models.Shard.State),
        (tr.LeasePhase, models.Lease.State),
    ],
)
def test_the_state_machine_and_the_rows_know_the_same_phases(phases, stored):
    assert [phase.value for phase in phases] == stored.values


@pytest.mark.parametrize(
    ("table", "phases"),
    [(tr.RUN, tr.RunPhase), (tr.ROUND, tr.RoundPhase), (tr.SHARD, tr.ShardPhase), (tr.LEASE, tr.LeasePhase)],
)
def test_every_phase_has_its_line_in_the_table_and_can_be_reached(table, phases):
    assert set(table) == set(phases)
    first, *others = phases
    assert set().union(*table.values()) - {first} == set(others)


def test_a_forbidden_transition_tells_the_story_of_the_lease():
    world, _ = started(ADA)
    lease = world.lease_of(ADA)
    world.send(ev.LeaseProgress(ADA, lease.id, 0))
    world.finish(ADA)
    turn = Turn(world.state, world.now, world.new_id, cause="a test")
    with pytest.raises(InvalidTransition, match="from accepted to running") as caught:
        turn.change(world.now_lease(lease), phase=tr.LeasePhase.RUNNING)
    assert "granted to running by LeaseProgress" in caught.value.message
    assert "reported to accepted by ResultChecked" in caught.value.message


def test_a_forbidden_transition_changes_nothing():
    world, run = started(ADA)
    turn = Turn(world.state, world.now, world.new_id)
    shard = world.shards_of(run)[1]
    with pytest.raises(InvalidTransition):
        turn.change(shard, phase=tr.ShardPhase.DONE)
    assert world.state.shards[shard.id] == shard
    assert not turn.outcome.changed.shards
