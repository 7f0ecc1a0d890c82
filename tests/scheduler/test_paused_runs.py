"""A paused run gets no new lease; what is leased goes on and is paid; resumed, it goes on where it was."""

import pytest

from scheduler import store
from scheduler.domain import events as ev
from scheduler.domain import instructions as ins
from scheduler.domain import machine
from scheduler.domain.transitions import RunPhase
from scheduler.domain.turn import RoundClosed, RunEnded
from scheduler.errors import RunNotFound
from scheduler.models import Inbox, Run
from scheduler.services import run_pause, run_resume, run_start

from .world import ADA, BO, CY, World, spec, started


def test_a_paused_run_leaves_free_devices_to_others():
    world = World()
    run, other = world.add_run(), world.add_run(spec(id=world.new_id(), buyer_id=2))
    world.send(ev.RunPaused(run.id))
    world.connect(ADA, BO, CY)
    assert {lease.run_id for lease in world.state.leases.values()} == {other.id}


def test_what_is_leased_goes_on_and_is_paid_and_then_it_stands_still():
    world, run = started(ADA)
    world.send(ev.RunPaused(run.id))
    world.pass_time(1)
    lease = world.finish(ADA)
    assert world.state.runs[run.id].spent_microusd > 0
    assert world.sent(ins.SendAck)[0].refusal is None
    assert not world.has_lease(ADA)
    world.pass_time(3_600)
    assert not world.has_lease(ADA)
    assert world.state.runs[run.id].phase is RunPhase.PAUSED
    assert world.state.runs[run.id].waiting == ""
    world.send(ev.RunResumed(run.id))
    assert world.lease_of(ADA).id != lease.id


def test_a_lease_that_is_lost_waits_for_the_run_to_go_on():
    world, run = started(ADA)
    world.send(ev.RunPaused(run.id))
    world.hand_back(ADA, "shutdown")
    world.connect(BO)
    assert not world.has_lease(BO)
    world.send(ev.RunResumed(run.id))
    assert world.has_lease(BO)


def test_a_round_whose_results_are_in_is_closed_and_the_last_one_ends_the_run():
    world, run = started(rounds_planned=1)
    world.send(ev.RunPaused(run.id))
    for device in (ADA, BO, CY):
        world.finish(device)
    world.aggregate(run)
    assert world.news == [RoundClosed(run.id, 0), RunEnded(run.id)]
    assert world.outcome.changed.runs[run.id].phase is RunPhase.FINISHED


def test_the_next_round_is_opened_and_waits():
    world, run = started()
    world.send(ev.RunPaused(run.id))
    for device in (ADA, BO, CY):
        world.finish(device)
    world.aggregate(run)
    assert world.round_of(run).index == 1
    assert not any(world.has_lease(device) for device in (ADA, BO, CY))


def test_a_paused_run_can_be_cancelled():
    world, run = started(ADA)
    lease = world.lease_of(ADA)
    world.send(ev.RunPaused(run.id))
    world.send(ev.RunCancelled(run.id))
    assert (lease.id, "cancelled") in world.revoked()
    assert world.news == [RunEnded(run.id)]


def test_money_that_is_too_little_for_another_shard_does_not_end_it_while_it_is_paused():
    world, run = started(ADA, budget_microusd=15_000)
    world.send(ev.RunPaused(run.id))
    world.pass_time(1)
    world.finish(ADA)
    world.pass_time(10)
    assert world.state.runs[run.id].phase is RunPhase.PAUSED
    world.send(ev.RunResumed(run.id))
    world.aggregate(run)
    assert world.outcome.changed.runs[run.id].ended_because == "budget"


@pytest.mark.parametrize("event", [ev.RunPaused, ev.RunResumed])
def test_told_twice_or_of_a_run_that_has_ended_nothing_happens(event):
    world, run = started(ADA)
    world.send(event(run.id))
    phase = world.state.runs[run.id].phase
    world.send(event(run.id))
    assert world.state.runs[run.id].phase is phase
    world.send(ev.RunCancelled(run.id))
    world.send(event(run.id))
    assert run.id not in world.state.runs


@pytest.mark.django_db
def test_a_server_that_starts_anew_still_knows_that_it_is_paused():
    world = World()
    run_start(spec=spec())
    store.recall(world.state, run_ids=[spec().id], lease_ids=[])
    store.save(world.send(ev.RunAdded(spec().id), ev.RunPaused(spec().id)))
    assert Run.objects.get().state == Run.State.PAUSED
    world.state = store.load()
    store.save(machine.recover(world.state, now=world.now, new_id=world.new_id))
    world.connect(ADA)
    assert not world.has_lease(ADA)


@pytest.mark.django_db
def test_the_services_ask_by_rows_and_know_their_runs():
    run_start(spec=spec())
    run_pause(run_id=spec().id)
    run_resume(run_id=spec().id)
    assert list(Inbox.objects.values_list("kind", flat=True)) == ["RunAdded", "RunPaused", "RunResumed"]
    with pytest.raises(RunNotFound):
        run_pause(run_id=World().new_id())
