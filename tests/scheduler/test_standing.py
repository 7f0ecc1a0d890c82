"""Failing devices sit out ever longer, honest ones are never blamed, and bad shards do not go round forever."""

from uuid import UUID

import pytest

from scheduler.domain import events as ev
from scheduler.domain import machine
from scheduler.domain.events import BLAMED
from scheduler.domain.state import State
from scheduler.domain.transitions import LeasePhase

from .world import ADA, BO, CY, World, connected, started

UNBLAMED = ("shutdown", "blocked", "busy", "too_big", "data_unavailable")


def fail(world: World, device) -> None:
    world.hand_back(device, "error")


def bench_s(world: World, device) -> float:
    until = world.state.standing(device).benched_until
    assert until is not None
    return (until - world.now).total_seconds()


def test_the_bench_doubles_with_every_failure_up_to_an_hour():
    world, _ = started(ADA)
    world.connect(BO, CY, blocked="paused")
    pauses = []
    for _ in range(11):
        fail(world, ADA)
        pauses.append(bench_s(world, ADA))
        world.pass_time(pauses[-1])
    assert pauses == [10, 20, 40, 80, 160, 320, 640, 1280, 2560, 3600, 3600]


def test_a_benched_device_gets_one_lease_to_prove_itself_after_its_pause():
    world, _ = started(ADA)
    fail(world, ADA)
    world.pass_time(9)
    assert not world.has_lease(ADA)
    world.pass_time(1)
    assert world.has_lease(ADA)


def test_a_success_clears_the_past():
    world, _ = started(ADA)
    fail(world, ADA)
    world.pass_time(10)
    world.finish(ADA)
    assert world.state.standing(ADA).failures_in_a_row == 0
    assert world.has_lease(ADA)


@pytest.mark.parametrize("reason", sorted(BLAMED))
def test_blamed_reasons_count_against_a_device(reason):
    world, _ = started(ADA)
    world.hand_back(ADA, reason)
    assert world.state.standing(ADA).failures_in_a_row == 1


@pytest.mark.parametrize("reason", UNBLAMED)
def test_other_reasons_do_not_count(reason):
    world, _ = started(ADA)
    world.hand_back(ADA, reason)
    assert world.state.standing(ADA).failures_in_a_row == 0


@pytest.mark.parametrize("reason", [reason for reason in UNBLAMED if reason != "shutdown"])
def test_a_device_that_hands_back_does_not_fetch_and_hand_back_in_a_loop(reason):
    world, _ = started(ADA)
    world.hand_back(ADA, reason)
    world.send(ev.DeviceReady(ADA, f"socket of {ADA}"))
    world.pass_time(29)
    assert not world.has_lease(ADA)


def test_a_device_that_stands_still_is_blamed_when_its_lease_expires():
    world, _ = started(ADA)
    world.pass_time(2)
    world.send(ev.LeaseProgress(ADA, world.lease_of(ADA).id, 1))
    world.pass_time(29)
    assert not world.has_lease(ADA)
    assert world.state.standing(ADA).failures_in_a_row == 1


def test_a_device_that_honestly_needs_longer_is_given_longer_and_not_blamed():
    world, _ = started(ADA, local_steps=100, step_flops=6e9)  # 10 s expected, 42 s allowed
    first = world.lease_of(ADA)
    allowed = first.deadline_at - first.granted_at
    for step in range(1, 9):
        world.send(ev.LeaseProgress(ADA, first.id, 5 * step))
        world.pass_time(5)
    world.pass_time(5)
    assert world.now_lease(first).phase is LeasePhase.EXPIRED
    assert world.state.standing(ADA).failures_in_a_row == 0
    second = world.lease_of(ADA)
    assert second.deadline_at - second.granted_at > 2 * allowed


def test_the_pace_of_a_device_is_learnt_from_its_results():
    world, _ = started(ADA, step_flops=300e9)  # 10 s expected
    lease = world.lease_of(ADA)
    world.pass_time(36)
    world.report(lease)
    world.check(lease)
    assert world.state.standing(ADA).pace == pytest.approx(0.7 + 0.3 * 36 / 12)
    assert world.lease_of(ADA).deadline_at - world.now > lease.deadline_at - lease.granted_at


def test_devices_that_come_and_go_without_a_word_sit_out_a_moment():
    world, _ = started(ADA)
    world.disconnect(ADA)
    world.pass_time(20)
    world.connect(ADA, session_id="back")
    assert not world.has_lease(ADA)
    world.pass_time(10)
    assert world.has_lease(ADA)


def test_the_servers_own_restart_never_counts_against_a_device():
    world, _ = started(ADA)
    lease = world.lease_of(ADA)
    reloaded = State()
    for table in ("runs", "rounds", "shards", "leases"):
        for entity in world.state.persisted()[table].values():
            reloaded.put(entity)
    world.state = reloaded
    machine.recover(world.state, now=world.now, new_id=world.new_id)
    world.pass_time(59)
    assert world.now_lease(lease).phase is LeasePhase.GRANTED
    world.pass_time(1)
    assert world.now_lease(lease).phase is LeasePhase.EXPIRED
    assert world.state.standings == {}


def test_a_shard_that_fails_on_every_device_fails_its_run_with_the_reason():
    world, run = started(ADA, BO, CY, shards_per_round=1)
    for _ in range(5):
        while not any(lease.live for lease in world.state.leases.values()):
            world.pass_time(10)
        lease = next(lease for lease in world.state.leases.values() if lease.live)
        world.report(lease)
        world.check(lease, refusal="delta_norm")
    ended = world.outcome.changed.runs[run.id]
    assert (ended.phase, ended.ended_because) == ("failed", "shard_keeps_failing")
    assert "delta_norm" in ended.ended_message


def test_the_devices_of_one_owner_cannot_fail_a_run_while_another_owners_device_is_there():
    world = World()
    run = world.add_run(shards_per_round=1)
    gang = [UUID(int=n) for n in range(100, 105)]
    world.send(*(connected(device, owner_id=7) for device in gang))
    world.connect(BO, blocked="paused")
    for _ in range(8):
        if not any(world.has_lease(device) for device in gang):
            world.pass_time(100)
        fail(world, next(device for device in gang if world.has_lease(device)))
    assert run.id in world.state.runs


def test_one_bad_device_among_many_does_not_fail_a_run():
    world, run = started(ADA, shards_per_round=1)
    world.connect(BO, CY, blocked="paused")
    for _ in range(8):
        while not world.has_lease(ADA):
            world.pass_time(100)
        fail(world, ADA)
    assert run.id in world.state.runs


def test_a_shard_is_given_to_another_device_than_the_one_it_failed_on():
    world, _ = started(ADA, shards_per_round=1)
    lease = world.lease_of(ADA)
    fail(world, ADA)
    world.pass_time(10)
    again = world.lease_of(ADA)
    fail(world, ADA)
    world.connect(BO)
    assert again.shard_id == lease.shard_id == world.lease_of(BO).shard_id
