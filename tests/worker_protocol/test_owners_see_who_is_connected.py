"""What an owner's page can know of a device's socket: that it is open, and what keeps the device from work."""

import uuid

import pytest
from asgiref.sync import sync_to_async
from django.core.cache import cache

from worker_protocol.presences import presence_forget, presence_note, presences
from worker_protocol.wire import messages as msg

DEVICE = uuid.UUID(int=7)
seen = sync_to_async(presences)


@pytest.fixture(autouse=True)
def _nobody_is_connected():
    cache.clear()


async def test_a_connected_device_is_seen_until_its_socket_closes(online, laptop):
    client, _ = online
    assert await seen([laptop.id]) == {laptop.id: None}
    await client.socket.disconnect()
    assert await seen([laptop.id]) == {}


async def test_what_blocks_a_device_is_seen_as_soon_as_it_is_decided(online, laptop):
    client, _ = online
    await client.say(msg.Status(charging=False))
    assert await client.reply() == msg.Blocked(reason="not_charging")
    assert await seen([laptop.id]) == {laptop.id: "not_charging"}


async def test_an_old_socket_that_closes_late_does_not_hide_the_newer_one():
    await presence_note(device_id=DEVICE, session_id="old", blocked=None)
    await presence_note(device_id=DEVICE, session_id="new", blocked="too_hot")
    await presence_forget(device_id=DEVICE, session_id="old")
    assert await seen([DEVICE]) == {DEVICE: "too_hot"}


async def test_a_device_that_never_called_is_not_seen():
    assert await seen([DEVICE]) == {}
