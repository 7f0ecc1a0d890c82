"""Whatever a peer sends, a session answers or closes; it never raises and never grows without bound."""

import json
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from worker_protocol.wire import messages as msg
from worker_protocol.wire.codec import decode_server, encode
from worker_protocol.wire.errors import ALL_ERRORS
from worker_protocol.wire.session import DeviceSession, ServerSession, SessionState

VECTORS = json.loads((Path(__file__).parent / "vectors" / "nightshift.v1.json").read_text())
KEY = Ed25519PrivateKey.from_private_bytes(bytes(32))
HELLO = msg.Hello(device_id="0b5c1a52-7f3e-4c58-9a57-2f4f6f1d0c11", agent="test")
NONCE = "ab" * 32
CLOSE_CODES = {error.close_code for error in ALL_ERRORS}


def texts(direction: str) -> st.SearchStrategy[str]:
    return st.sampled_from([v["text"] for v in VECTORS["messages"] if v["direction"] == direction])


def mutilated(texts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """A message with a piece cut out and something else put there."""

    def cut(parts: tuple[str, int, int, str]) -> str:
        text, start, length, filling = parts
        at = start % len(text)
        return text[:at] + filling + text[at + length :]

    return st.tuples(texts, st.integers(0, 500), st.integers(0, 9), st.text(max_size=5)).map(cut)


def frames(direction: str) -> st.SearchStrategy[str | bytes]:
    valid = texts(direction)
    return st.one_of(valid, valid, mutilated(valid), st.text(), st.binary(max_size=100))


def open_server() -> ServerSession:
    """A server's session past the log-in."""
    session = ServerSession(nonce=NONCE, now_ms=0)
    device = DeviceSession(hello=HELLO, key=KEY, now_ms=0)
    [hello] = device.frames_to_send()
    session.receive(hello, 0)
    [challenge] = session.frames_to_send()
    device.receive(challenge, 0)
    [auth] = device.frames_to_send()
    session.receive(auth, 0)
    session.welcome(server_time_ms=0, blocked=None)
    session.frames_to_send()
    return session


@given(st.lists(st.tuples(frames("device"), st.integers(0, 20_000)), max_size=30), st.booleans())
def test_no_device_can_make_a_servers_session_raise(steps, logged_in):
    session = open_server() if logged_in else ServerSession(nonce=NONCE, now_ms=0)
    now_ms = 0
    for frame, wait_ms in steps:
        now_ms += wait_ms
        session.receive(frame, now_ms)
        session.tick(now_ms)
        for answer in session.frames_to_send():
            decode_server(answer)  # whatever it says is valid
    if session.state is SessionState.CLOSED:
        assert session.close_code in CLOSE_CODES
        assert session.receive(encode(HELLO), now_ms) == []
        assert session.frames_to_send() == []


@given(st.lists(st.tuples(frames("server"), st.integers(0, 20_000)), max_size=30))
def test_no_server_can_make_a_devices_session_raise(steps):
    session = DeviceSession(hello=HELLO, key=KEY, now_ms=0)
    now_ms = 0
    for frame, wait_ms in steps:
        now_ms += wait_ms
        session.receive(frame, now_ms)
        session.tick(now_ms)
        if session.status_is_due(now_ms):
            session.send_status(msg.Status(), now_ms)
    assert session.state is not SessionState.CLOSED or session.close_code in CLOSE_CODES


def test_a_device_that_claims_ever_new_leases_fills_no_memory():
    session = open_server()
    for number in range(100):
        lease_id = f"00000000-0000-4000-8000-{number:012d}"
        session.receive(encode(msg.Progress(lease_id=lease_id, step=0)), now_ms=number * 1_000)
    assert len(session.leases) == msg.MAX_HELD_LEASES
    assert lease_id in session.leases


def test_a_clock_that_steps_back_gives_no_free_messages():
    session = open_server()
    ready = encode(msg.Ready())
    taken = [session.receive(ready, now_ms) for now_ms in (1_000, 0) * 100]
    assert sum(map(bool, taken)) < 100
    assert session.close_code == 4006
