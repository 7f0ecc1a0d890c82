"""The browser's messages, signatures and sessions against the vectors that every implementation is tested with."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.phone.worker.conftest import Harness
from worker_protocol.wire.errors import ALL_ERRORS, ProtocolError

pytestmark = pytest.mark.browser

VECTORS = json.loads(
    (Path(__file__).parents[2] / "worker_protocol" / "vectors" / "nightshift.v1.json").read_text()
)
OURS = [vector for vector in VECTORS["sessions"] if vector["role"] == "device"]


def named(section: str) -> Any:
    return pytest.mark.parametrize("vector", VECTORS[section], ids=lambda vector: vector["name"])


@named("messages")
def test_a_message_has_these_fields_and_bytes(page: Harness, vector: dict[str, Any]) -> None:
    read = page.call("decoded", vector["direction"], {"text": vector["text"]})["value"]
    # Fields that may be left out are filled in; what the text has is read as it stands.
    assert {name: read[name] for name in vector["fields"]} == vector["fields"]
    written = page.call("rewritten", vector["direction"], vector["text"])["value"]
    assert canonical(written) == vector["text"]


@named("readable")
def test_a_lenient_frame_is_read(page: Harness, vector: dict[str, Any]) -> None:
    written = page.call("rewritten", vector["direction"], vector["text"])["value"]
    assert json.loads(written) == json.loads(vector["means"])


@named("invalid")
def test_an_invalid_frame_has_this_error(page: Harness, vector: dict[str, Any]) -> None:
    frame = {name: vector[name] for name in ("text", "binary_hex", "repeated") if name in vector}
    error = page.call("decoded", vector["direction"], frame)["error"]
    assert (error["code"], error["field"]) == (vector["code"], vector["field"])


@pytest.mark.parametrize("vector", VECTORS["signing"])
def test_a_signature_is_these_bytes(page: Harness, vector: dict[str, Any]) -> None:
    signed = page.call("signed", vector)
    assert signed == {name: vector[name] for name in ("signing_bytes", "signature")}


@pytest.mark.parametrize("vector", OURS, ids=lambda vector: vector["name"])
def test_a_session_goes_like_this(page: Harness, vector: dict[str, Any]) -> None:
    outcomes = page.call("played", vector)
    for step, outcome in zip(vector["steps"], outcomes, strict=True):
        expected = {name: step[name] for name in ("sends", "acts_on", "state", "close_code")}
        for name in ("sends", "acts_on"):
            outcome[name] = [json.loads(text) for text in outcome[name]]
            expected[name] = [json.loads(text) for text in expected[name]]
        assert outcome == expected, step


@pytest.mark.parametrize("kind", ALL_ERRORS, ids=lambda kind: kind.code)
def test_every_close_code_has_its_meaning(page: Harness, kind: type[ProtocolError]) -> None:
    assert page.call("closeMeaning", kind.close_code)["code"] == kind.code


def test_a_message_of_ours_that_is_wrong_is_never_sent(page: Harness) -> None:
    error = page.call("encoded", {"type": "status", "battery_percent": 101})["error"]
    assert (error["code"], error["field"]) == ("bad_field", "battery_percent")


def canonical(text: str) -> str:
    """JavaScript writes `80` for `80.0`; numbers of a status are fractions to Python."""
    message = json.loads(text)
    if message["type"] == "status":
        message = {name: float(value) if type(value) is int else value for name, value in message.items()}
    return json.dumps(message, separators=(",", ":"), ensure_ascii=False)
