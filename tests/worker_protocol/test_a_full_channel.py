"""The dispatcher's channel has no room: nothing is lost in silence, everything is said again."""

from typing import Any
from uuid import UUID

import pytest
from channels.exceptions import ChannelFull

from scheduler import fleet
from scheduler.domain import events as ev
from tests.worker_protocol.conftest import channel_layer, site_with
from worker_protocol.wire import messages as msg

LEASE = "6d1f6a44-50a8-4a0e-8f4f-3d1f6c2b9e01"


@pytest.fixture
def fill(monkeypatch):
    """Fills the dispatcher's channel, and empties it again."""

    def set_full(full: bool) -> None:
        layer = channel_layer()
        send = type(layer).send

        async def refuse(channel: str, message: dict[str, Any]) -> None:
            if channel == fleet.DISPATCHER and full:
                raise ChannelFull
            await send(layer, channel, message)

        monkeypatch.setattr(layer, "send", refuse)

    return set_full


@pytest.mark.parametrize(
    ("message", "lease_id"), [(msg.Ready(), None), (msg.Handback(lease_id=LEASE, reason="error"), LEASE)]
)
async def test_a_message_that_cannot_be_passed_on_is_answered_busy(
    message, lease_id, online, dispatcher, fill
):
    client, _ = online
    fill(True)
    await client.say(message)
    error = await client.reply()
    assert isinstance(error, msg.Error)
    assert (error.code, error.fatal, error.lease_id) == ("busy", False, lease_id)
    fill(False)
    await client.say(message)
    assert (await dispatcher.hears()).device_id


async def test_a_device_is_not_welcome_before_the_dispatcher_could_be_told(call_in, fill):
    fill(True)
    client = call_in()
    await client.connect()
    await client.flush()
    await client.reply()
    error = await client.error()
    assert (error.code, error.fatal) == ("busy", True)
    assert await client.closed_with() == 4013


async def test_a_block_that_could_not_be_told_is_told_later(call_in, dispatcher, laptop, fill):
    client = call_in(site_with(tick_s=0.01))
    await client.log_in()
    await dispatcher.hears()
    fill(True)
    await client.say(msg.Status(charging=False))
    assert await client.reply() == msg.Blocked(reason="not_charging")
    assert await client.hears_nothing()
    fill(False)
    assert await dispatcher.hears() == ev.DeviceBlocked(laptop.id, "not_charging")


async def test_an_announcement_that_could_not_be_made_is_made_later(call_in, dispatcher, fill):
    client = call_in(site_with(tick_s=0.01), leases=[LEASE])
    await client.log_in()
    connected = await dispatcher.hears()
    fill(True)
    await channel_layer().group_send(fleet.FLEET_GROUP, fleet.ANNOUNCE)
    assert await client.hears_nothing()
    fill(False)
    announced = await dispatcher.hears()
    assert announced == connected
    assert announced.resumed == (UUID(LEASE),)


async def test_a_good_bye_is_tried_again(online, dispatcher, laptop, fill, monkeypatch):
    client, connected = online
    waits = []

    async def room_at_last(wait_s: float) -> None:
        waits.append(wait_s)
        if len(waits) == 3:
            fill(False)

    monkeypatch.setattr("worker_protocol.consumer.asyncio.sleep", room_at_last)
    fill(True)
    await client.socket.disconnect()
    monkeypatch.undo()
    assert await dispatcher.hears() == ev.DeviceDisconnected(laptop.id, connected.session_id)
    assert len(waits) == 3
