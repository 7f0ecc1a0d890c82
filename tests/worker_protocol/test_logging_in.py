"""Who gets a socket, and who does not."""

from uuid import UUID

import pytest
from channels.testing import WebsocketCommunicator
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from accounts.models import Device, IdleWindow
from marketplace.asgi import application
from scheduler.domain import events as ev
from tests.worker_protocol.conftest import PATH, site_with
from worker_protocol.wire import limits

LEASE = "6d1f6a44-50a8-4a0e-8f4f-3d1f6c2b9e01"
SLICE = "ab" * 32


async def test_a_paired_device_is_welcome_and_the_dispatcher_learns_all_about_it(
    call_in, dispatcher, laptop, ada
):
    client = call_in(memory_bytes=1_000, max_buffer_bytes=256, leases=[LEASE], cached=[SLICE])
    welcome = await client.log_in()
    assert welcome.blocked is None
    assert welcome.heartbeat_ms == limits.HEARTBEAT_MS
    connected = await dispatcher.hears()
    assert connected == ev.DeviceConnected(
        device_id=laptop.id,
        session_id=connected.session_id,
        owner_id=ada.id,
        device_class="laptop-cpu",
        speed_factor=1.0,
        memory_bytes=1_000,
        max_buffer_bytes=256,
        blocked=None,
        resumed=(UUID(LEASE),),
        cached=(SLICE,),
    )
    await laptop.arefresh_from_db()
    assert laptop.last_seen_at is not None


async def test_a_device_outside_its_windows_is_welcome_but_blocked(call_in, dispatcher):
    await IdleWindow.objects.all().adelete()
    welcome = await call_in().log_in()
    assert welcome.blocked == "outside_window"
    assert (await dispatcher.hears()).blocked == "outside_window"


async def refusal(client) -> tuple[str, int]:
    """Log in as far as it goes: the error's code and the code that the socket closes with."""
    await client.connect()
    await client.flush()
    await client.reply()
    error = await client.error()
    assert error.fatal
    return error.code, await client.closed_with()


async def test_another_key_is_refused(call_in):
    assert await refusal(call_in(key=Ed25519PrivateKey.generate())) == ("auth_failed", 4003)


async def test_an_unknown_device_is_refused_in_the_same_words_as_a_wrong_key(call_in):
    unknown = "00000000-0000-4000-8000-000000000000"
    assert await refusal(call_in(device_id=unknown)) == ("auth_failed", 4003)


async def test_a_removed_device_is_told_so_once_it_has_proved_itself(call_in, laptop):
    await Device.objects.aupdate(state=Device.State.REMOVED)
    assert await refusal(call_in()) == ("device_removed", 4004)
    assert await refusal(call_in(key=Ed25519PrivateKey.generate())) == ("auth_failed", 4003)


@pytest.mark.parametrize("offered", [[], ["nightshift.v0"], ["graphql-ws"]])
async def test_a_client_that_does_not_speak_the_protocol_gets_no_socket(offered):
    socket = WebsocketCommunicator(application, PATH, subprotocols=offered)
    connected, _ = await socket.connect()
    assert not connected
    await socket.wait()


async def test_a_client_that_does_not_log_in_is_closed_after_ten_seconds(call_in):
    now_ms = [0]
    client = call_in(site_with(clock_ms=lambda: now_ms[0], tick_s=0.01))
    await client.connect()
    now_ms[0] = limits.AUTH_TIMEOUT_MS
    assert await client.hears_nothing()
    now_ms[0] += 1
    assert (await client.error()).code == "auth_timeout"
    assert await client.closed_with() == 4007


async def test_a_signature_for_one_socket_does_not_open_another(call_in):
    first, second = call_in(), call_in()
    for client in (first, second):
        await client.connect()
        await client.flush()
    await first.socket.receive_from()
    challenge_of_second = await second.socket.receive_from()
    first.session.receive(challenge_of_second, 0)
    await first.flush()
    assert (await first.error()).code == "auth_failed"
