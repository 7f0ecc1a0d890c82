"""A web process that is killed says no good-bye for its devices: who does not answer is given nothing more."""

from scheduler.domain import events as ev
from scheduler.domain import instructions as ins
from scheduler.domain.transitions import LeasePhase

from .world import ADA, BO, World, connected, started

OF_ADA = f"socket of {ADA}"


def unanswered(world: World) -> None:
    """Twenty seconds in which nobody confirms a lease."""
    for _ in range(4):
        world.pass_time(5)


def test_a_lease_that_is_never_confirmed_goes_to_another_device_long_before_its_deadline():
    world, _ = started(ADA, shards_per_round=1)
    lease = world.lease_of(ADA)
    unanswered(world)
    assert world.now_lease(lease).phase is LeasePhase.EXPIRED
    assert world.now < lease.deadline_at
    world.connect(BO)
    assert world.lease_of(BO).shard_id == lease.shard_id


def test_its_device_gets_no_other_lease_however_much_time_passes():
    world, _ = started(ADA)
    unanswered(world)
    for _ in range(10):
        world.pass_time(600)
    assert not world.has_lease(ADA)


def test_it_is_asked_whether_it_lives_and_works_on_when_it_does():
    world, _ = started(ADA)
    unanswered(world)
    assert world.sent(ins.AnnounceDevice) == [ins.AnnounceDevice(OF_ADA)]
    world.connect(ADA)
    world.pass_time(10)  # the bench for the lease it has lost
    assert world.has_lease(ADA)


def test_the_shard_of_a_dead_socket_is_not_taken_for_a_bad_one():
    world, run = started(ADA, shards_per_round=1)
    for _ in range(8):
        unanswered(world)
        world.pass_time(3600)
        world.connect(ADA)
    assert world.state.runs[run.id].phase == "active"


def test_a_device_that_the_dispatcher_does_not_know_is_asked_to_announce_itself():
    world = World()
    world.send(ev.DeviceReady(ADA, OF_ADA))
    assert world.sent(ins.AnnounceDevice) == [ins.AnnounceDevice(OF_ADA)]


def test_an_older_socket_of_a_known_device_is_asked_nothing():
    world = World()
    world.send(connected(ADA, session_id="new"))
    world.send(ev.DeviceReady(ADA, "old"))
    assert world.outcome.instructions == []
