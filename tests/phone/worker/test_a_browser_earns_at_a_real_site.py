"""A browser's worker at a site of real processes: paired, leased, trained, uploaded, acknowledged."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.phone.worker.conftest import Night
from tests.worker_protocol.real_site import ROUNDS
from tests.worker_protocol.test_real_devices_at_a_real_site import World

pytestmark = [pytest.mark.browser, pytest.mark.end_to_end, pytest.mark.slow, pytest.mark.timeout(240)]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path, site_module="tests.phone.worker.real_site")
    yield world
    world.end()


def test_a_paired_browser_trains_the_run_and_earns(world: World, night: Night) -> None:
    site = world.start_site()
    assert site.stdout is not None
    codes = json.loads(site.stdout.readline())["codes"]
    night.visit(world.url)
    device = night.call("pair", codes[0])
    night.start(url=None)
    night.wait_until(lambda state: state["leasesDone"] == 2 * ROUNDS)
    world.wait_until(lambda: world.rounds_closed() == ROUNDS)
    leases = world.ask("select distinct device_id, state from scheduler_lease")
    assert [(str(owner).replace("-", ""), state) for owner, state in leases] == [
        (device.replace("-", ""), "accepted")
    ]
    state = night.wait_until(lambda state: state["earnedMicrousd"] > 0)
    assert state["terms"]["battery_resume_percent"] > state["terms"]["battery_floor_percent"]
    assert night.call("failures") == []
