"""A client past a bound gets an error frame and is closed; the others do not notice."""

import asyncio
from itertools import count

import pytest

from scheduler.domain import events as ev
from tests.worker_protocol.conftest import site_with
from worker_protocol import consumer
from worker_protocol.outbound import MAX_QUEUED_FRAMES
from worker_protocol.wire import limits
from worker_protocol.wire import messages as msg
from worker_protocol.wire.codec import encode


@pytest.mark.parametrize(
    ("frame", "code", "close_code"),
    [
        ({"bytes_data": b"\0" * 8}, "binary_frame", 4010),
        ({"text_data": "x" * (limits.MAX_FRAME_BYTES + 1)}, "frame_too_big", 4011),
        ({"text_data": "[" * 10_000}, "bad_json", 4012),
        ({"text_data": '{"type":"auth","signature":"' + "0" * 128 + '"}'}, "wrong_state", 4002),
    ],
)
async def test_a_bad_frame_ends_its_socket(frame, code, close_code, online, dispatcher, laptop):
    client, connected = online
    await client.socket.send_to(**frame)
    error = await client.error()
    assert (error.code, error.fatal) == (code, True)
    assert await client.closed_with() == close_code
    await client.socket.disconnect()
    assert await dispatcher.hears() == ev.DeviceDisconnected(laptop.id, connected.session_id)


async def test_a_wrong_field_is_answered_and_forgiven(online, dispatcher):
    client, _ = online
    await client.socket.send_to(text_data='{"type":"progress","lease_id":"7","step":0}')
    error = await client.error()
    assert (error.code, error.fatal) == ("bad_field", False)
    assert "lease_id" in error.message
    await client.say(msg.Ready())
    assert isinstance(await dispatcher.hears(), ev.DeviceReady)


async def test_a_device_that_talks_too_fast_is_closed(call_in):
    client = call_in(site_with(clock_ms=lambda: 0))
    await client.log_in()
    for _ in range(limits.BURST_MESSAGES):
        await client.socket.send_to(text_data=encode(msg.Ready()))
    assert (await client.error()).code == "too_fast"
    assert await client.closed_with() == 4006


async def test_a_silent_device_is_closed_after_three_heartbeats(call_in, dispatcher, laptop):
    now_ms = [0]
    client = call_in(site_with(clock_ms=lambda: now_ms[0], tick_s=0.01))
    await client.log_in()
    connected = await dispatcher.hears()
    now_ms[0] = limits.MISSED_HEARTBEATS * limits.HEARTBEAT_MS
    assert await client.hears_nothing()
    now_ms[0] += 1
    assert (await client.error()).code == "silent"
    assert await client.closed_with() == 4008
    await client.socket.disconnect()
    assert await dispatcher.hears() == ev.DeviceDisconnected(laptop.id, connected.session_id)


async def test_a_device_that_does_not_read_is_cut_off(call_in, monkeypatch):
    """The server below stops taking frames, as it does when a client's window is full."""
    monkeypatch.setattr(consumer, "LAST_FRAMES_S", 0.01)
    full = asyncio.Event()
    inner = site_with(clock_ms=count(step=1_000).__next__)

    async def with_full_window(scope, receive, send):
        async def send_unless_full(message):
            if full.is_set() and message["type"] == "websocket.send":
                await asyncio.Event().wait()
            await send(message)

        await inner(scope, receive, send_unless_full)

    client = call_in(with_full_window)
    await client.log_in()
    full.set()
    for _ in range(MAX_QUEUED_FRAMES + 2):  # one is being written when the queue begins to fill
        await client.socket.send_to(text_data=encode(msg.Status()))
    assert await client.closed_with() == 4009


async def test_a_failure_of_ours_ends_one_socket_and_says_so(
    online, call_in, dispatcher, monkeypatch, caplog
):
    def broken(*args, **kwargs):
        raise RuntimeError("the database is away")

    client, _ = online
    monkeypatch.setattr(consumer, "event_of", broken)
    await client.say(msg.Ready())
    error = await client.error()
    assert (error.code, error.fatal) == ("internal", True)
    assert "database" not in error.message
    assert await client.closed_with() == 4014
    assert "the database is away" in caplog.text
    monkeypatch.undo()
    other = call_in()
    await other.log_in()
