"""The demo's path with a device killed, then the server killed: the job ends, every shard is paid exactly once."""

import pytest

from marketplace.demo.site import Site
from tests.end_to_end.conftest import World
from tests.end_to_end.stories import assert_paid_once, assert_trained, start_job

pytestmark = [pytest.mark.end_to_end, pytest.mark.slow, pytest.mark.timeout(300)]


def test_a_job_outlives_a_killed_device_and_a_killed_server_and_is_paid_once(world: World[Site]):
    for name, throttle in [("fast", 0.6), ("slow", 0.3), ("doomed", 0.3)]:
        world.pair(name, throttle=throttle)
    with world.client("buyer") as buyer:
        job = start_job(world, buyer)
        job.wait_for_rounds(2)
        world.devices["doomed"].kill()
        job.wait_for_rounds(4)
        world.site.kill()
        world.site.start()
        job.wait_for_end()
        assert_trained(job)
    assert_paid_once(world)
