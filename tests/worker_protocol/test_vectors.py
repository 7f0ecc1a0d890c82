"""Our codec, signatures and sessions against the vectors that every implementation is tested with."""

import json
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from worker_protocol.wire import messages as msg
from worker_protocol.wire.codec import Frame, decode_device, decode_server, encode
from worker_protocol.wire.errors import ALL_ERRORS, AuthFailed, ProtocolError
from worker_protocol.wire.limits import TokenBucket
from worker_protocol.wire.session import DeviceSession, ServerSession
from worker_protocol.wire.signing import sign, signature_is_valid, signing_bytes

VECTORS = json.loads((Path(__file__).parent / "vectors" / "nightshift.v1.json").read_text())
DECODERS = {"device": decode_device, "server": decode_server}


def named(section: str) -> Any:
    return pytest.mark.parametrize("vector", VECTORS[section], ids=lambda vector: vector["name"])


@named("messages")
def test_a_message_has_these_bytes_and_fields(vector):
    message = DECODERS[vector["direction"]](vector["text"])
    assert encode(message) == vector["text"]
    assert vector["text"].encode().hex() == vector["hex"]
    assert json.loads(vector["text"]) == vector["fields"]


def test_every_message_has_a_vector():
    seen = {vector["fields"]["type"] for vector in VECTORS["messages"]}
    assert seen == {cls.__struct_config__.tag for cls in msg.Message.__subclasses__()}


@named("readable")
def test_a_lenient_frame_is_read(vector):
    assert encode(DECODERS[vector["direction"]](vector["text"])) == vector["means"]


@named("invalid")
def test_an_invalid_frame_has_this_error(vector):
    with pytest.raises(ProtocolError) as caught:
        DECODERS[vector["direction"]](invalid_frame(vector))
    assert (caught.value.code, caught.value.field) == (vector["code"], vector["field"])


@pytest.mark.parametrize("vector", VECTORS["signing"])
def test_a_signature_is_these_bytes(vector):
    key = Ed25519PrivateKey.from_private_bytes(bytes.fromhex(vector["key_seed"]))
    challenge = {"nonce": vector["nonce"], "device_id": vector["device_id"]}
    assert signing_bytes(**challenge).hex() == vector["signing_bytes"]
    assert sign(key, **challenge) == vector["signature"]
    public_key = bytes.fromhex(vector["public_key"])
    assert signature_is_valid(public_key=public_key, signature=vector["signature"], **challenge)
    for other in VECTORS["signing"]:
        if other is not vector:
            assert not signature_is_valid(public_key=public_key, signature=other["signature"], **challenge), (
                "another key's or challenge's signature passed"
            )


@pytest.mark.parametrize("vector", VECTORS["token_buckets"])
def test_a_token_bucket_lets_these_through(vector):
    bucket = TokenBucket(rate_per_s=vector["rate_per_s"], burst=vector["burst"], now_ms=0)
    for take in vector["takes"]:
        assert bucket.take(take["at_ms"]) is take["taken"], take


@named("sessions")
def test_a_session_goes_like_this(vector):
    play = play_server if vector["role"] == "server" else play_device
    play(vector["setup"], vector["steps"])


def test_every_close_code_but_those_of_the_manager_alone_is_played():
    played = {step["close_code"] for vector in VECTORS["sessions"] for step in vector["steps"]}
    outside_a_session = {"device_removed", "superseded", "slow_reader", "internal"}
    optional = {"frame_too_big", "unknown_type", "busy"}  # covered as frames, or not fatal after the log-in
    expected = {e.close_code for e in ALL_ERRORS if e.code not in outside_a_session | optional}
    assert expected <= played


def test_every_close_code_is_one_that_an_application_may_send():
    # RFC 6455 7.4: browsers and daphne refuse to send the protocol's own codes, such as 1007 or 1011.
    assert all(4000 <= error.close_code <= 4999 for error in ALL_ERRORS)


def invalid_frame(vector: dict[str, Any]) -> Frame:
    if "text" in vector:
        return str(vector["text"])
    if "binary_hex" in vector:
        return bytes.fromhex(vector["binary_hex"])
    parts = vector["repeated"]
    return str(parts["before"] + parts["unit"] * parts["times"] + parts["after"])


def play_server(setup: dict[str, Any], steps: list[dict[str, Any]]) -> None:
    session = ServerSession(nonce=setup["nonce"], now_ms=0)
    for step in steps:
        acts_on = feed(session, step, decode_server)
        for message in acts_on:
            if isinstance(message, msg.Auth):
                if session.is_signed_by(bytes.fromhex(setup["public_key"]), message):
                    server_time_ms = setup["server_epoch_ms"] + step["at_ms"]
                    session.welcome(server_time_ms=server_time_ms, blocked=setup["blocked"])
                else:
                    session.fail(AuthFailed())
        assert outcome(session, acts_on) == expected_outcome(step), step
        assert list(session.leases) == step["leases"], step


def play_device(setup: dict[str, Any], steps: list[dict[str, Any]]) -> None:
    hello, status = decode_device(setup["hello"]), decode_device(setup["status"])
    assert isinstance(hello, msg.Hello)
    assert isinstance(status, msg.Status)
    key = Ed25519PrivateKey.from_private_bytes(bytes.fromhex(setup["key_seed"]))
    session = DeviceSession(hello=hello, key=key, now_ms=0)
    for step in steps:
        acts_on = [] if "open" in step else feed(session, step, decode_device)
        if session.status_is_due(step["at_ms"]):
            session.send_status(status, step["at_ms"])
        assert outcome(session, acts_on) == expected_outcome(step), step


def feed(session: Any, step: dict[str, Any], decode_own: Any) -> list[Any]:
    """Do what a step says to a session of either end."""
    if "send" in step:
        session.send(decode_own(step["send"]))
    elif "tick" in step:
        session.tick(step["at_ms"])
    else:
        frame = step["receive"] if "receive" in step else bytes.fromhex(step["receive_binary_hex"])
        return list(session.receive(frame, step["at_ms"]))
    return []


def outcome(session: Any, acts_on: list[msg.Message]) -> dict[str, Any]:
    return {
        "sends": session.frames_to_send(),
        "acts_on": [encode(message) for message in acts_on],
        "state": session.state,
        "close_code": session.close_code,
    }


def expected_outcome(step: dict[str, Any]) -> dict[str, Any]:
    return {name: step[name] for name in ("sends", "acts_on", "state", "close_code")}
