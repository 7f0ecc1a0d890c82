"""Web processes, dispatchers and workers of their own: each is killed in turn, and the job goes on without it."""

import time

import pytest

from tests.end_to_end.conftest import World, wait_until
from tests.end_to_end.production import ProductionSite
from tests.end_to_end.stories import assert_paid_once, assert_trained, blamed_devices, start_job

pytestmark = [
    pytest.mark.end_to_end,
    pytest.mark.slow,
    pytest.mark.services("postgresql", "redis", "rabbitmq"),
    pytest.mark.timeout(300),
]

EPOCHS = 24


def test_a_job_outlives_every_kind_of_process_and_is_paid_once(production: World[ProductionSite]):
    site = production.site
    for name, throttle in [("fast", 0.6), ("slow", 0.3), ("slower", 0.2)]:
        production.pair(name, throttle=throttle)
    with production.client("buyer") as buyer:
        job = start_job(production, buyer, epochs=EPOCHS)
        job.wait_for_rounds(1)
        site.kill_process(active_dispatcher(site))
        job.wait_for_headway()

        freeze_amid_aggregation(production)
        site.kill_children("worker-1")  # as the kernel does when memory runs out: the worker itself lives on
        site.thaw("worker-1")
        job.wait_for_headway()

        freeze_amid_aggregation(production)
        site.kill_process("worker-1")
        site.start_process("worker-2")
        job.wait_for_headway()

        site.kill_process("web-1")
        job.wait_for_end()
        assert_trained(job)
    assert_paid_once(production)
    assert blamed_devices(production) == []


def active_dispatcher(site: ProductionSite) -> str:
    """The process that holds the lock; its holder is `host:pid:random`."""
    (holder,) = site.query("SELECT holder FROM scheduler_dispatcherlock")
    pid = int(holder.split(":")[1])
    return next(name for name, process in site.processes.items() if process.pid == pid)


def freeze_amid_aggregation(production: World[ProductionSite]) -> None:
    """Stop the worker at a moment when it makes an outer step, which takes it some hundredths of a second."""
    site = production.site

    def is_aggregating() -> bool:
        return site.query("SELECT count(*) FROM scheduler_round WHERE state = 'aggregating'") == [1]

    def is_caught() -> bool:
        if not is_aggregating():
            return False
        site.freeze("worker-1")
        time.sleep(0.2)  # for an outer step that was just finished to be heard of
        if is_aggregating() and site.has_busy_children("worker-1"):
            return True
        site.thaw("worker-1")
        return False

    wait_until(is_caught, world=production, every_s=0.005)
