"""Only devices that may work get work: not blocked, not benched, priced, big enough, and within the budget."""

import pytest

from scheduler.domain import events as ev
from scheduler.domain import instructions as ins
from scheduler.domain.transitions import LeasePhase

from .world import ADA, BO, World, connected, started


@pytest.mark.parametrize(
    "changes",
    [
        {"blocked": "outside_window"},
        {"blocked": "too_hot"},
        {"device_class": "phone-high"},
        {"device_class": "unheard-of"},
        {"memory_bytes": 999_999},
        {"max_buffer_bytes": 499_999},
    ],
)
def test_a_device_that_is_not_eligible_gets_no_work(changes):
    world = World()
    world.add_run(largest_buffer_bytes=500_000)
    world.connect(ADA, **changes)
    assert not world.has_lease(ADA)


def test_unknown_memory_keeps_nobody_from_work():
    world = World()
    world.add_run()
    world.connect(ADA, memory_bytes=0)
    assert world.has_lease(ADA)


@pytest.mark.parametrize(
    ("allowed_bytes", "needed_bytes"), [(0, 500_000), (500_000, 500_000), (1, 0)],
    ids=["the device does not say", "just enough", "the run does not say"],
)  # fmt: skip
def test_a_buffer_keeps_nobody_from_work_unless_it_is_known_not_to_fit(allowed_bytes, needed_bytes):
    world = World()
    world.add_run(largest_buffer_bytes=needed_bytes)
    world.connect(ADA, max_buffer_bytes=allowed_bytes)
    assert world.has_lease(ADA)


def test_a_shard_too_large_for_one_device_goes_to_another():
    world = World()
    world.add_run(largest_buffer_bytes=500_000, shards_per_round=1)
    world.connect(ADA, max_buffer_bytes=499_999)
    world.connect(BO, max_buffer_bytes=500_000)
    assert world.has_lease(BO)
    assert not world.has_lease(ADA)


def test_a_device_that_becomes_blocked_stops_at_once_and_another_takes_over():
    world, _ = started(ADA, shards_per_round=1)
    world.connect(BO)
    lease = world.lease_of(ADA)
    world.send(ev.DeviceBlocked(ADA, "not_charging"))
    assert world.revoked() == [(lease.id, "blocked")]
    assert world.lease_of(BO).shard_id == lease.shard_id
    assert world.state.standing(ADA).failures_in_a_row == 0


def test_a_device_gets_work_as_soon_as_its_window_opens():
    world = World()
    world.add_run()
    world.connect(ADA, blocked="outside_window")
    world.send(ev.DeviceBlocked(ADA, None))
    assert world.has_lease(ADA)


def test_a_removed_device_loses_its_lease_and_its_socket():
    world, _ = started(ADA)
    lease = world.lease_of(ADA)
    world.send(ev.DeviceRemoved(ADA))
    assert world.sent(ins.CloseSession) == [ins.CloseSession(f"socket of {ADA}", "removed")]
    assert world.now_lease(lease).phase is LeasePhase.REVOKED
    assert not world.has_lease(ADA)


def test_a_changed_device_is_decided_anew_by_its_socket():
    world, _ = started(ADA)
    world.send(ev.DeviceChanged(ADA))
    assert world.outcome.instructions == [ins.RefreshDevice(f"socket of {ADA}")]


def test_work_that_is_too_big_for_a_device_is_not_offered_to_it_again():
    world, _ = started(ADA)
    world.hand_back(ADA, "too_big")
    for _ in range(5):
        world.pass_time(60)
        assert not world.has_lease(ADA)
    assert world.state.standing(ADA).failures_in_a_row == 0


def test_a_device_that_has_a_shards_data_is_preferred():
    world = World()
    world.connect(ADA, speed_factor=2.0)
    world.send(ev.DeviceBlocked(ADA, "paused"))
    run = world.add_run(shards_per_round=1)
    (shard,) = world.shards_of(run)
    data = run.slices[shard.slice_index].sha256
    world.send(connected(ADA, speed_factor=2.0), connected(BO, cached=(data,)))
    assert world.has_lease(BO)
    assert not world.has_lease(ADA)


def test_without_cached_data_the_device_that_is_done_first_is_preferred():
    world = World()
    world.add_run(shards_per_round=1)
    world.send(connected(ADA), connected(BO, speed_factor=2.0))
    assert world.has_lease(BO)
    assert not world.has_lease(ADA)
