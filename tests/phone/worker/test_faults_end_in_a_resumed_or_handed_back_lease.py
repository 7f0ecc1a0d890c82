"""What happens to phones at night, by real means: tabs killed, GPUs lost, storage full, a second tab."""

import time
from collections.abc import Callable

import pytest
from playwright.sync_api import Browser

from metal_kernels.tensorfile import tensorfile_dumps, tensorfile_loads
from tests.phone.worker.conftest import LEASE, OTHER_LEASE, Leases, Night
from tests.phone.worker.jobs import tiny_job
from tests.phone.worker.standins import Site, stand_in
from tests.worker_protocol.sites import BlobSite
from worker_protocol.wire import messages as msg

MEBIBYTE = 2**20
pytestmark = pytest.mark.browser


@pytest.mark.usefixtures("at_work")
def test_a_killed_tab_leaves_a_device_that_works_again(night: Night, site: Site, lease: Leases) -> None:
    night.call("kill", "worker")
    night.start("second")
    while len(site.hellos) < 2:
        site.hears(msg.Status)
    assert site.hellos[-1].leases == []  # so the site gives the shard to another
    assert len(site.hellos[-1].cached) == 3
    site.drain()
    site.hears(msg.Ready)
    site.says(lease(OTHER_LEASE))
    assert site.hears(msg.Result).lease_id == OTHER_LEASE


@pytest.mark.usefixtures("ready")
def test_a_result_outlives_the_tab_that_made_it(night: Night, site: Site, lease: Leases) -> None:
    site.says(lease())
    first = site.hears(msg.Result)
    wait_until(lambda: night.call("keptReports") == 1)  # the tab writes it down while it tells it
    night.call("kill", "worker")
    site.drain()
    night.start("second")
    assert site.hears(msg.Result) == first
    assert site.hellos[-1].leases == [LEASE]


@pytest.mark.usefixtures("ready")
def test_a_download_goes_on_in_the_next_tab_where_a_killed_one_left_it(
    night: Night, site: Site, lease: Leases, blobs: BlobSite
) -> None:
    file = tensorfile_loads(tiny_job().program_file)
    padded = {**file.metadata, "note": "x" * (4 * MEBIBYTE)}  # so that there is a middle to stop in
    offer = lease(program=blobs.add(tensorfile_dumps(file.tensors, metadata=padded)))
    blobs.faults = ["stall"]
    site.says(offer)
    wait_until(lambda: night.call("keptBytes") >= MEBIBYTE)
    night.call("kill", "worker")
    night.start("second")
    site.hears(msg.Ready)
    site.says(offer)
    site.hears(msg.Result)
    first, second = blobs.requests[:2]
    assert first == "GET"
    assert int(second.removeprefix("GET bytes=").rstrip("-")) >= MEBIBYTE


@pytest.mark.parametrize("fault", ["cut", "spoil", 503])
@pytest.mark.usefixtures("ready")
def test_a_download_that_fails_is_tried_again(
    fault: str | int, site: Site, lease: Leases, blobs: BlobSite
) -> None:
    blobs.faults = [fault]
    site.says(lease())
    assert site.hears(msg.Result).lease_id == LEASE


@pytest.mark.parametrize("fault", [503, "gap"])
@pytest.mark.usefixtures("ready")
def test_an_upload_that_fails_goes_on(fault: str | int, site: Site, lease: Leases, blobs: BlobSite) -> None:
    blobs.faults = [None, None, None, fault]
    site.says(lease())
    result = site.hears(msg.Result)
    assert len(blobs.uploads[f"/upload-{LEASE}"]) == result.delta_bytes


@pytest.mark.usefixtures("at_work")
def test_a_lost_gpu_hands_the_lease_back_and_the_next_one_is_trained(
    site: Site, lease: Leases, chromium: Browser
) -> None:
    chromium.new_browser_cdp_session().send("Browser.crashGpuProcess")
    assert site.hears(msg.Handback).reason == "device_lost"
    site.hears(msg.Ready)
    site.says(lease(OTHER_LEASE))
    assert site.hears(msg.Result).lease_id == OTHER_LEASE


def test_full_storage_costs_the_cache_and_not_the_lease(
    night: Night, site: Site, lease: Leases, address: str
) -> None:
    night.devtools().send("Storage.overrideQuotaForOrigin", {"origin": address, "quotaSize": 1_000})
    night.start()
    site.hears(msg.Ready)
    site.says(lease())
    assert site.hears(msg.Result).lease_id == LEASE
    assert night.wait_until(lambda state: state["error"])["error"]["code"] == "storage_full"
    site.says(msg.Ack(lease_id=LEASE, accepted=True))


@pytest.mark.usefixtures("ready")
def test_the_second_tab_of_a_device_says_so_and_the_first_works_on(
    night: Night, site: Site, lease: Leases
) -> None:
    night.start("second")
    ended = night.wait_until(lambda state: state["phase"] == "ended", "second")
    assert ended["error"]["code"] == "other_tab"
    site.says(lease())
    assert site.hears(msg.Result).lease_id == LEASE
    assert len(site.hellos) == 1


@pytest.mark.usefixtures("ready")
def test_a_tab_that_is_told_of_a_newer_one_elsewhere_ends(night: Night, site: Site) -> None:
    site.says(msg.Error(code="superseded", message="Another.", fatal=True))
    site.closes(4005)
    assert night.wait_until(lambda state: state["phase"] == "ended")["error"]["code"] == "superseded"


def test_a_site_that_restarts_finds_its_device_again(night: Night) -> None:
    with stand_in() as before:
        port = int(before.url.rpartition(":")[2])
        night.move(before.url)
        night.start()
        before.hears(msg.Ready)
    assert night.wait_until(lambda state: state["error"])["connected"] is False
    with stand_in(port) as after:
        after.hears(msg.Ready)
        night.wait_until(lambda state: state["connected"])


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)
