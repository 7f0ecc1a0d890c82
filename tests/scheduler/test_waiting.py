"""A run that makes no headway knows why."""

import pytest

from scheduler.domain import events as ev

from .world import ADA, BO, World, started


def reason(world: World, run) -> str:
    world.pass_time(0)
    return world.state.runs[run.id].waiting


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"blocked": "outside_window"}, "none_in_idle_window"),
        ({"blocked": "battery_low"}, "devices_blocked"),
        ({"memory_bytes": 10}, "too_big"),
        ({"device_class": "phone-high"}, "no_device_online"),
    ],
)
def test_a_run_knows_what_its_devices_lack(changes, code):
    world = World()
    run = world.add_run()
    world.connect(ADA, **changes)
    assert reason(world, run) == code


def test_without_devices_none_is_online():
    world = World()
    assert reason(world, world.add_run()) == "no_device_online"


def test_a_run_that_makes_headway_does_not_wait():
    world, run = started(ADA)
    assert reason(world, run) == ""


def test_a_run_waits_for_a_fleet_that_is_busy_with_others():
    world, _ = started(ADA)
    other = world.add_run(id=world.new_id(), buyer_id=2)
    assert reason(world, other) == "fleet_busy"


def test_a_run_waits_for_benched_devices():
    world, run = started(ADA)
    world.hand_back(ADA, "error")
    assert reason(world, run) == "devices_benched"


def test_one_device_in_another_state_makes_the_reason_more_general():
    world = World()
    run = world.add_run()
    world.connect(ADA, blocked="outside_window")
    world.connect(BO, blocked="paused")
    assert reason(world, run) == "devices_blocked"
    world.send(ev.DeviceBlocked(BO, None))
    assert reason(world, run) == ""
