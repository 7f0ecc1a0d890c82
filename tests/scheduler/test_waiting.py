"""A run that makes no headway knows why."""

import pytest

from scheduler.domain import events as ev
from scheduler.selectors import why_waiting
from scheduler.store import spec_to_row

from .world import ADA, BO, World, spec, started


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


def shortage(**devices: dict[str, int]) -> tuple[str, int]:
    """Why a run of 1,000,000 bytes, one buffer of 500,000 among them, waits for devices of these sizes."""
    world = World()
    run = world.add_run(largest_buffer_bytes=500_000)
    for device, sizes in zip((ADA, BO), devices.values(), strict=False):
        world.connect(device, **sizes)
    world.pass_time(0)
    state = world.state.runs[run.id]
    return state.waiting, state.waiting_bytes


def test_where_no_memory_is_enough_the_most_that_a_device_has_is_known():
    assert shortage(ada={"memory_bytes": 10}, bo={"memory_bytes": 999_999}) == ("too_big", 999_999)


def test_where_no_buffer_is_enough_the_most_that_a_device_allows_is_known():
    assert shortage(ada={"max_buffer_bytes": 100_000}, bo={"max_buffer_bytes": 499_999}) == (
        "buffer_too_big",
        499_999,
    )


def test_the_buffer_of_a_device_without_the_memory_does_not_count():
    assert shortage(
        ada={"max_buffer_bytes": 100_000}, bo={"memory_bytes": 10, "max_buffer_bytes": 900_000}
    ) == ("buffer_too_big", 100_000)


def test_a_device_that_found_out_by_itself_leaves_no_figure():
    world, run = started(ADA, shards_per_round=1)
    world.hand_back(ADA, "too_big")
    world.pass_time(0)
    state = world.state.runs[run.id]
    assert (state.waiting, state.waiting_bytes) == ("too_big", 0)


def test_the_figure_goes_when_a_larger_device_comes():
    world = World()
    run = world.add_run(largest_buffer_bytes=500_000)
    world.connect(ADA, max_buffer_bytes=1)
    world.pass_time(0)
    world.connect(BO)
    world.pass_time(0)
    state = world.state.runs[run.id]
    assert (state.waiting, state.waiting_bytes) == ("", 0)


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


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("waiting", "most_bytes", "words"),
    [
        ("too_big", 900_000_000, "takes 1.60 GB of memory; no device that is online has more than 900 MB"),
        (
            "buffer_too_big",
            1_073_741_823,
            "a buffer of 1.20 GB; no device that is online allows more than 1.07 GB",
        ),
        ("too_big", 0, "No device that is online has enough memory for this model."),
        ("fleet_busy", 0, "busy with other jobs"),
    ],
)
def test_a_buyer_reads_what_is_needed_and_what_there_is(waiting, most_bytes, words):
    row = spec_to_row(spec(memory_bytes=1_600_000_000, largest_buffer_bytes=1_200_000_000))
    row.waiting, row.waiting_bytes = waiting, most_bytes
    row.save(force_insert=True)
    said = why_waiting(row.id)
    assert said is not None
    assert (said.code, words in said.sentence) == (waiting, True), said.sentence
