"""docs/protocol.md says everything that the code does: messages, fields, codes, bounds."""

import re
from pathlib import Path

import msgspec
import pytest

from scheduler.domain import events as ev
from worker_protocol.wire import limits
from worker_protocol.wire import messages as msg
from worker_protocol.wire.errors import ALL_ERRORS, ProtocolError
from worker_protocol.wire.session import FROM_DEVICE, FROM_SERVER, SessionState

PAGE = (Path(__file__).parents[2] / "docs" / "protocol.md").read_text()
MESSAGES = msg.Message.__subclasses__()


def tag(cls: type[msg.Message]) -> str:
    return str(cls.__struct_config__.tag)


def section(title: str) -> str:
    """The text under a heading, up to the next one of its level or above."""
    found = re.search(rf"^(#+) {re.escape(title)}$", PAGE, flags=re.MULTILINE)
    assert found is not None, f"docs/protocol.md has no section {title}"
    rest = PAGE[found.end() :]
    return re.split(rf"^#{{1,{len(found[1])}}} ", rest, maxsplit=1, flags=re.MULTILINE)[0]


@pytest.mark.parametrize("cls", MESSAGES, ids=tag)
def test_a_message_has_a_section_with_every_field_and_an_example(cls):
    text = section(f"`{tag(cls)}`")
    for name in cls.__struct_fields__:
        assert f"`{name}`" in text, name
    example = re.search(r"```json\n(.+)\n```", text)
    assert example is not None
    assert set(msgspec.json.decode(example[1])) <= {"type", *cls.__struct_fields__}


@pytest.mark.parametrize("error", ALL_ERRORS, ids=lambda error: error.code)
def test_an_error_is_in_the_table_as_it_is_in_the_code(error):
    fatal = "yes" if error.fatal else "no"
    assert f"| `{error.code}` | {fatal} | {error.close_code} |" in section("Errors and close codes")


def test_the_table_of_errors_is_complete():
    def leaves(cls: type[ProtocolError]) -> set[type[ProtocolError]]:
        below = cls.__subclasses__()
        return set().union(*map(leaves, below)) if below else {cls}

    assert leaves(ProtocolError) == set(ALL_ERRORS)
    assert len({error.code for error in ALL_ERRORS}) == len(ALL_ERRORS)
    assert len({error.close_code for error in ALL_ERRORS}) == len(ALL_ERRORS)


@pytest.mark.parametrize("state", [s for s in SessionState if s is not SessionState.CLOSED])
def test_the_table_of_states_is_that_of_the_code(state):
    row = next(line for line in section("The log-in").splitlines() if line.startswith(f"| {state} "))
    _, _, _, from_device, from_server, _ = row.split("|")
    assert re.findall(r"`(\w+)`", from_device) == [tag(cls) for cls in FROM_DEVICE[state]]
    assert re.findall(r"`(\w+)`", from_server) == [tag(cls) for cls in FROM_SERVER[state]]


def test_every_reason_for_a_hand_back_is_in_its_table_and_the_schedulers():
    reasons = msg.HandbackReason.__args__  # type: ignore[attr-defined]
    assert set(reasons) == set(re.findall(r"^\| `(\w+)` \|", section("`handback`"), flags=re.MULTILINE)) - {
        "field"
    }
    assert set(reasons) == set(ev.HandbackReason.__args__)  # type: ignore[attr-defined]


def test_the_bounds_are_those_of_the_code():
    text = section("Bounds")
    for bound in (
        f"{limits.MAX_FRAME_BYTES:,} bytes",
        f"{limits.MESSAGES_PER_SECOND} a second, {limits.BURST_MESSAGES} in a burst",
        f"{limits.AUTH_TIMEOUT_MS // 1000} s",
        f"{limits.MISSED_HEARTBEATS} heartbeats ({limits.MISSED_HEARTBEATS * limits.HEARTBEAT_MS // 1000} s)",
        f"| {msg.MAX_HELD_LEASES} |",
        f"| {msg.MAX_STEPS:,} |",
    ):
        assert bound in text, bound
