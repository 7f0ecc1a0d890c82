"""Between a device and the dispatcher: events up, instructions down, each translated once."""

from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from channels.db import database_sync_to_async
from django.test import AsyncClient

from blobs.services import blob_put
from common.clock import utc_now
from scheduler import fleet
from scheduler.domain import events as ev
from scheduler.domain import instructions as ins
from scheduler.selectors import LeaseWork
from tests.worker_protocol.conftest import channel_layer
from worker_protocol import consumer
from worker_protocol.wire import messages as msg

LEASE = "6d1f6a44-50a8-4a0e-8f4f-3d1f6c2b9e01"
SHA = "cd" * 32

UP = [
    (msg.Ready(), lambda d, s: ev.DeviceReady(device_id=d, session_id=s)),
    (
        msg.Progress(lease_id=LEASE, step=3),
        lambda d, s: ev.LeaseProgress(device_id=d, lease_id=UUID(LEASE), step=3),
    ),
    (
        msg.Handback(lease_id=LEASE, reason="too_big", detail="9 GB"),
        lambda d, s: ev.LeaseHandedBack(device_id=d, lease_id=UUID(LEASE), reason="too_big", detail="9 GB"),
    ),
    (
        msg.Result(lease_id=LEASE, delta_sha256=SHA, delta_bytes=9, gpu_us=7, steps=2, losses=[0.5, 0.25]),
        lambda d, s: ev.ResultReported(
            device_id=d,
            lease_id=UUID(LEASE),
            delta_sha256=SHA,
            delta_bytes=9,
            gpu_us=7,
            steps=2,
            losses=(0.5, 0.25),
        ),
    ),
]


@pytest.mark.parametrize(("message", "event"), UP, ids=lambda value: getattr(type(value), "__name__", ""))
async def test_a_devices_message_becomes_the_dispatchers_event(message, event, online, dispatcher, laptop):
    client, connected = online
    await client.say(message)
    assert await dispatcher.hears() == event(laptop.id, connected.session_id)


async def test_a_revoke_reaches_the_device(online, dispatcher):
    client, connected = online
    await dispatcher.tells(
        ins.SendRevoke(session_id=connected.session_id, lease_id=UUID(LEASE), reason="cancelled")
    )
    assert await client.reply() == msg.Revoke(lease_id=LEASE, reason="cancelled")


async def test_an_ack_says_what_the_owner_earns(online, dispatcher):
    client, connected = online
    accepted = ins.SendAck(connected.session_id, UUID(LEASE), refusal=None, earned_microusd=801)
    await dispatcher.tells(accepted)
    assert await client.reply() == msg.Ack(lease_id=LEASE, accepted=True, code="", earned_microusd=801)
    await dispatcher.tells(replace(accepted, refusal="late", earned_microusd=0))
    assert await client.reply() == msg.Ack(lease_id=LEASE, accepted=False, code="late", earned_microusd=0)


async def test_a_socket_joins_its_groups_again_for_redis_forgets_them(online, dispatcher, monkeypatch):
    monkeypatch.setattr("worker_protocol.presence.SEEN_EVERY", timedelta())
    client, connected = online
    await channel_layer().group_discard(fleet.FLEET_GROUP, connected.session_id)
    await client.say(msg.Status())
    await client.reply()
    await channel_layer().group_send(fleet.FLEET_GROUP, fleet.ANNOUNCE)
    assert await dispatcher.hears() == connected


async def test_a_socket_can_be_asked_to_announce_its_device_again(online, dispatcher):
    _, connected = online
    await dispatcher.tells(ins.AnnounceDevice(connected.session_id))
    assert await dispatcher.hears() == connected


@pytest.mark.parametrize(("reason", "code"), [("removed", 4004), ("superseded", 4005)])
async def test_the_dispatcher_can_close_a_socket(reason, code, online, dispatcher):
    client, connected = online
    await dispatcher.tells(ins.CloseSession(connected.session_id, reason))
    assert (await client.error()).fatal
    assert await client.closed_with() == code


async def test_a_device_that_goes_is_reported_gone(online, dispatcher, laptop):
    client, connected = online
    await client.socket.disconnect()
    assert await dispatcher.hears() == ev.DeviceDisconnected(laptop.id, connected.session_id)


async def test_the_newer_socket_of_a_device_works_on_when_the_older_is_closed(online, call_in, dispatcher):
    older, first = online
    newer = call_in()
    await newer.log_in()
    second = await dispatcher.hears()
    assert isinstance(second, ev.DeviceConnected)
    assert second.device_id == first.device_id
    assert second.session_id != first.session_id
    await dispatcher.tells(ins.CloseSession(first.session_id, "superseded"))
    assert (await older.error()).code == "superseded"
    await older.socket.disconnect()
    assert await dispatcher.hears() == ev.DeviceDisconnected(first.device_id, first.session_id)
    await newer.say(msg.Ready())
    assert await dispatcher.hears() == ev.DeviceReady(second.device_id, second.session_id)


async def test_a_new_dispatcher_is_told_of_the_device_and_the_leases_it_holds(online, dispatcher):
    client, connected = online
    await client.say(msg.Progress(lease_id=LEASE, step=1))
    await dispatcher.hears()
    await channel_layer().group_send(fleet.FLEET_GROUP, fleet.ANNOUNCE)
    assert await dispatcher.hears() == replace(connected, resumed=(UUID(LEASE),))


async def test_a_lease_that_ended_is_not_announced_as_held(online, dispatcher):
    client, connected = online
    await client.say(msg.Progress(lease_id=LEASE, step=1))
    await dispatcher.hears()
    await dispatcher.tells(ins.SendAck(connected.session_id, UUID(LEASE), None, 0))
    await client.reply()
    await channel_layer().group_send(fleet.FLEET_GROUP, fleet.ANNOUNCE)
    assert await dispatcher.hears() == connected


async def test_a_server_that_stops_soon_tells_its_devices(online):
    client, _ = online
    drain = {"type": "fleet.drain", "reconnect_ms": 3_000}
    await channel_layer().group_send(fleet.FLEET_GROUP, drain)
    assert await client.reply() == msg.Drain(reconnect_ms=3_000)


@pytest.fixture
def work(laptop, monkeypatch):
    """Lets the scheduler know one lease, made of three stored blobs."""

    def known(**changes) -> LeaseWork:
        blobs = [blob_put(data=name.encode(), holder="test") for name in ("program", "params", "slice")]
        ids = [(f"{n}_sha256", b.sha256) for n, b in zip(("program", "params", "slice"), blobs, strict=True)]
        sizes = [
            (f"{n}_bytes", b.size_bytes) for n, b in zip(("program", "params", "slice"), blobs, strict=True)
        ]
        lease = LeaseWork(
            **{
                "lease_id": UUID(LEASE),
                "device_id": laptop.id,
                "steps": 20,
                "batch_size": 32,
                "seed": 5,
                "learning_rate": 0.1,
                "deadline_at": utc_now() + timedelta(seconds=30),
                "live": True,
                **dict(ids),
                **dict(sizes),
                **changes,
            }
        )
        monkeypatch.setattr(consumer, "lease_for_device", lambda lease_id: lease)
        return lease

    return known


async def test_a_lease_carries_addresses_that_serve_it(online, dispatcher, work, laptop, settings):
    lease = await database_sync_to_async(work)()
    client, connected = online
    await dispatcher.tells(ins.SendLease(connected.session_id, UUID(LEASE)))
    received = await client.reply()
    assert isinstance(received, msg.Lease)
    assert (received.lease_id, received.steps, received.batch_size) == (LEASE, 20, 32)
    assert (received.seed, received.learning_rate) == (5, 0.1)
    assert 25_000 < received.time_left_ms <= 30_000
    http = AsyncClient()
    for blob, content in [(received.program, b"program"), (received.params, b"params")]:
        answer: Any = await http.get(blob.url.removeprefix(settings.PUBLIC_URL))
        assert b"".join([part async for part in answer.streaming_content]) == content
        assert blob.size_bytes == len(content)
    assert received.slice.sha256 == lease.slice_sha256
    assert received.upload_url.startswith(settings.PUBLIC_URL)


@pytest.mark.parametrize(
    "changes", [{"live": False}, {"device_id": UUID(int=1)}], ids=["a lease that ended", "another's lease"]
)
async def test_a_lease_that_is_not_the_devices_any_more_is_not_sent(changes, online, dispatcher, work):
    await database_sync_to_async(work)(**changes)
    client, connected = online
    await dispatcher.tells(ins.SendLease(connected.session_id, UUID(LEASE)))
    assert await client.hears_nothing()
