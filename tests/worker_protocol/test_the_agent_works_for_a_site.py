"""A device at work, over real sockets: leases, dropped connections, orders to stop."""

import asyncio
import hashlib
import random
from contextlib import asynccontextmanager

import httpx
import msgspec
import pytest

from metal_kernels.delta import delta_decode
from tests.worker_protocol.conftest import KEY
from tests.worker_protocol.sites import blob_site, socket_site
from tests.worker_protocol.tiny import BATCH, tiny_job
from worker_protocol.agent import device as device_module
from worker_protocol.agent import workbench
from worker_protocol.agent.cache import BlobCache
from worker_protocol.agent.device import Device
from worker_protocol.agent.errors import ServerUnreachable, TurnedAway
from worker_protocol.agent.keys import Identity, Pairing
from worker_protocol.agent.progress import Lines
from worker_protocol.agent.trainer import Trainer
from worker_protocol.agent.transport import Transport
from worker_protocol.wire import errors as wire_errors
from worker_protocol.wire import messages as msg

DEVICE = "0b5c1a52-7f3e-4c58-9a57-2f4f6f1d0c11"
LEASE = "6d1f6a44-50a8-4a0e-8f4f-3d1f6c2b9e01"
OTHER_LEASE = "6d1f6a44-50a8-4a0e-8f4f-3d1f6c2b9e02"
LONG = {"steps": msg.MAX_STEPS, "throttle": 0.02}


@pytest.fixture(autouse=True)
def _impatient(monkeypatch):
    monkeypatch.setattr(device_module, "RECONNECT_BASE_S", 0.02)
    monkeypatch.setattr(device_module, "TICK_S", 0.02)
    monkeypatch.setattr(workbench, "PROGRESS_MS", 20)


@pytest.fixture
def blobs():
    with blob_site() as site:
        yield site


@pytest.fixture
async def site():
    async with socket_site() as site:
        yield site


@pytest.fixture
def lease(blobs):
    """Makes leases on the tiny job."""
    job = tiny_job()

    def make(lease_id: str = LEASE, steps: int = 5, **changes) -> msg.Lease:
        fields = {
            "lease_id": lease_id,
            "program": blobs.add(job.program_file),
            "params": blobs.add(job.params),
            "slice": blobs.add(job.slice),
            "steps": steps,
            "batch_size": BATCH,
            "seed": 11,
            "learning_rate": 0.1,
            "time_left_ms": 30_000,
            "upload_url": f"{blobs.url}/upload-{lease_id}",
        }
        return msg.Lease(**{**fields, **changes})

    return make


class Running:
    """A device that runs beside the test, and how it ended."""

    def __init__(self, device: Device) -> None:
        self.stop = asyncio.Event()
        self.task = asyncio.create_task(device.run(self.stop))

    async def ends(self) -> None:
        self.stop.set()
        await asyncio.wait_for(self.task, 10)


@pytest.fixture
def running(tmp_path):
    """Runs a device for the length of a `with`."""

    @asynccontextmanager
    async def run(site, *, throttle=1.0, memory_bytes=10**9, status=msg.Status):
        rng = random.Random(1)
        cache = BlobCache(tmp_path / "blobs", max_bytes=10**8)
        async with httpx.AsyncClient() as client:
            device = Device(
                identity=Identity(Pairing(server=site.url, device_id=DEVICE), KEY),
                transport=Transport(client, cache, rng=rng),
                trainer=Trainer(throttle=throttle),
                cache=cache,
                display=Lines(),
                read_status=status,
                memory_bytes=memory_bytes,
                rng=rng,
            )
            running = Running(device)
            try:
                yield running
            finally:
                if not running.task.done():
                    await running.ends()

    return run


async def test_a_lease_is_trained_uploaded_and_reported(site, lease, blobs, running):
    async with running(site):
        await site.hears(msg.Status)
        await site.hears(msg.Ready)
        await site.says(lease())
        assert (await site.hears(msg.Progress)).step == 0
        result = await site.hears(msg.Result)
        await site.hears(msg.Ready)
        delta = blobs.uploads[f"/upload-{LEASE}"]
        assert (result.lease_id, result.steps, len(result.losses)) == (LEASE, 5, 5)
        assert (result.delta_sha256, result.delta_bytes) == (hashlib.sha256(delta).hexdigest(), len(delta))
        assert result.gpu_us > 0
        assert delta_decode(delta, spec=tiny_job().program.model_spec)
    assert site.hellos[0].leases == []


async def test_the_terms_are_shown_once_for_each_change(site, running, caplog):
    caplog.set_level("INFO", logger="nightshift.agent")
    first = msg.Terms(
        opens_ms=None,
        closes_ms=None,
        battery_floor_percent=40,
        battery_resume_percent=45,
        charging_only=True,
        wifi_only=True,
        too_hot_celsius=40,
        microusd_per_gpu_hour=288_000,
        earned_microusd=0,
    )
    second = msgspec.structs.replace(first, earned_microusd=1_200)
    async with running(site):
        await site.hears(msg.Ready)
        for terms in (first, first, second, second):
            await site.says(terms)
        await site.hears(msg.Status)  # the next heartbeat, by when all of them were read
    shown = [line for line in caplog.messages if "an hour of GPU time" in line]
    assert [line.rpartition(", ")[2] for line in shown] == [
        "$0.00 earned since noon",
        "$0.0012 earned since noon",
    ]


async def test_a_result_is_repeated_on_a_new_socket_until_it_is_acknowledged(site, lease, running):
    async with running(site):
        await site.hears(msg.Ready)
        await site.says(lease())
        first = await site.hears(msg.Result)
        await site.drops()
        assert await site.hears(msg.Result) == first
        assert site.hellos[-1].leases == [LEASE]
        site.drain()
        await site.says(msg.Ack(lease_id=LEASE, accepted=True, earned_microusd=7))
        await site.says(msg.Revoke(lease_id=OTHER_LEASE, reason="unknown"))
        await site.hears(msg.Ready)  # which answers the revoke, so the ack has been read too
        await site.drops()
        await site.hears(msg.Ready)
        assert site.hellos[-1].leases == []


async def test_work_goes_on_while_the_socket_is_away_and_is_resumed(site, lease, running):
    async with running(site, throttle=LONG["throttle"]):
        await site.hears(msg.Ready)
        await site.says(lease(steps=LONG["steps"]))
        while (before := await site.hears(msg.Progress)).step == 0:
            pass
        await site.drops()
        resumed = await site.hears(msg.Progress)
        assert site.hellos[-1].leases == [LEASE]
        assert resumed.lease_id == LEASE
        assert resumed.step >= before.step


async def test_a_repeated_lease_is_only_confirmed_again(site, lease, running, blobs):
    async with running(site, throttle=LONG["throttle"]):
        await site.hears(msg.Ready)
        await site.says(lease(steps=LONG["steps"]))
        while (before := await site.hears(msg.Progress)).step == 0:
            pass
        await site.says(lease(steps=LONG["steps"]))
        assert (await site.hears(msg.Progress)).step >= before.step
        assert len([r for r in blobs.requests if r.startswith("GET")]) == 3


async def test_a_second_lease_is_handed_back_as_busy(site, lease, running):
    async with running(site, throttle=LONG["throttle"]):
        await site.hears(msg.Ready)
        await site.says(lease(steps=LONG["steps"]))
        await site.hears(msg.Progress)
        await site.says(lease(OTHER_LEASE))
        assert await site.hears(msg.Handback) == msg.Handback(lease_id=OTHER_LEASE, reason="busy")


async def test_a_revoked_lease_is_dropped_and_the_next_one_taken(site, lease, running):
    async with running(site, throttle=LONG["throttle"]):
        await site.hears(msg.Ready)
        await site.says(lease(steps=LONG["steps"]))
        while (await site.hears(msg.Progress)).step == 0:
            pass
        await site.says(msg.Revoke(lease_id=LEASE, reason="cancelled"))
        await site.hears(msg.Ready)
        await site.says(lease(OTHER_LEASE, steps=2))
        assert (await site.hears(msg.Result)).lease_id == OTHER_LEASE


async def test_a_device_that_may_not_work_hands_back_and_waits(site, lease, running):
    async with running(site, throttle=LONG["throttle"]):
        await site.hears(msg.Ready)
        await site.says(lease(steps=LONG["steps"]))
        await site.hears(msg.Progress)
        await site.says(msg.Blocked(reason="not_charging"))
        assert await site.hears(msg.Handback) == msg.Handback(lease_id=LEASE, reason="blocked")
        await site.hears(msg.Status)  # a heartbeat on, still no word of being ready
        assert not any(isinstance(m, msg.Ready) for m in site.drain())
        await site.says(msg.Blocked(reason=None))
        await site.hears(msg.Ready)


async def test_a_device_that_is_blocked_when_it_comes_is_not_ready(site, running):
    site.blocked = "outside_window"
    async with running(site):
        await site.hears(msg.Status)
        await site.hears(msg.Status)
        assert not any(isinstance(m, msg.Ready) for m in site.drain())


async def test_a_changed_reading_is_told_at_once(site, running, monkeypatch):
    monkeypatch.setattr(device_module, "SENSORS_EVERY_MS", 10)
    readings = [msg.Status(charging=True)]
    async with running(site, status=lambda: readings[-1]):
        assert (await site.hears(msg.Status)).charging is True
        readings.append(msg.Status(charging=False))
        assert (await site.hears(msg.Status)).charging is False


async def test_a_free_device_says_so_with_every_heartbeat(site, running):
    async with running(site):
        for _ in range(3):
            await site.hears(msg.Ready)


@pytest.mark.parametrize("memory_bytes", [100, 6_000])
async def test_a_lease_too_big_is_refused_before_its_data_are_fetched(
    memory_bytes, site, lease, running, blobs
):
    async with running(site, memory_bytes=memory_bytes):
        await site.hears(msg.Ready)
        await site.says(lease(slice=msg.Blob(sha256="ab" * 32, size_bytes=5_900, url="http://127.0.0.1:9/")))
        handback = await site.hears(msg.Handback)
    assert (handback.lease_id, handback.reason) == (LEASE, "too_big")
    assert len(blobs.requests) <= 1  # the program at most


async def test_data_that_cannot_be_had_hand_the_lease_back(site, lease, running, blobs):
    offer = lease()
    blobs.blobs.clear()
    async with running(site):
        await site.hears(msg.Ready)
        await site.says(offer)
        assert (await site.hears(msg.Handback)).reason == "data_unavailable"
        await site.hears(msg.Ready)


async def test_a_busy_server_hears_the_report_again(site, lease, running, monkeypatch):
    monkeypatch.setattr(workbench, "BUSY_MS", 20)
    async with running(site, memory_bytes=100):
        await site.hears(msg.Ready)
        await site.says(lease())
        first = await site.hears(msg.Handback)
        busy = wire_errors.Busy(lease_id=LEASE)
        await site.says(msg.Error(code=busy.code, message=busy.message, fatal=False, lease_id=LEASE))
        assert await site.hears(msg.Handback) == first


async def test_an_unanswered_result_is_repeated_on_the_same_socket(site, lease, running, monkeypatch):
    monkeypatch.setattr(workbench, "REPEAT_MS", 50)
    async with running(site):
        await site.hears(msg.Ready)
        await site.says(lease())
        first = await site.hears(msg.Result)
        assert await site.hears(msg.Result) == first
    assert len(site.hellos) == 1


async def test_stopping_hands_the_lease_back_before_the_socket_closes(site, lease, running):
    async with running(site, throttle=LONG["throttle"]) as device:
        await site.hears(msg.Ready)
        await site.says(lease(steps=LONG["steps"]))
        await site.hears(msg.Progress)
        await device.ends()
    assert await site.hears(msg.Handback) == msg.Handback(lease_id=LEASE, reason="shutdown")
    assert await site.ended.get() == 1000


@pytest.mark.parametrize(
    "refusal", [wire_errors.DeviceRemoved(), wire_errors.Superseded(), wire_errors.AuthFailed()]
)
async def test_a_device_that_is_not_wanted_stops_with_the_servers_sentence(refusal, site, running):
    site.refusal = refusal
    async with running(site) as device:
        with pytest.raises(TurnedAway, match=refusal.message.split(";")[0]):
            await asyncio.wait_for(device.task, 10)


async def test_trouble_of_the_server_is_waited_out(site, running):
    site.refusal = wire_errors.Internal()
    async with running(site):
        while len(site.hellos) < 3:
            await asyncio.wait_for(site.ended.get(), 10)
        site.refusal = None
        await site.hears(msg.Ready)


async def test_a_drained_device_waits_as_long_as_it_is_told(site, running):
    async with running(site):
        await site.hears(msg.Ready)
        await site.says(msg.Drain(reconnect_ms=300))
        loop = asyncio.get_running_loop()
        await site.drops()
        dropped_at = loop.time()
        await site.hears(msg.Ready)
        assert loop.time() - dropped_at >= 0.3


async def test_a_site_that_is_not_there_at_the_start_is_a_plain_error(running):
    async with socket_site() as gone:
        pass
    async with running(gone) as device:
        with pytest.raises(ServerUnreachable, match="check --server"):
            await asyncio.wait_for(device.task, 10)


async def test_a_site_that_restarts_finds_its_device_again(running):
    async with socket_site() as before:
        port = int(before.url.rpartition(":")[2])
        device = running(before)
        await device.__aenter__()
        await before.hears(msg.Ready)
        await before.drops()
    await asyncio.sleep(0.1)  # a while without a site
    async with socket_site(port) as after:
        await after.hears(msg.Ready)
        await device.__aexit__(None, None, None)
