"""The channel-layer messages between the dispatcher and the sockets of devices.

A channel message is `{"type": <handler>, "body": <msgspec builtins>}`. Sockets send device events to the
dispatcher's channel; the dispatcher sends instructions to the socket's own channel, whose name is the
device's `session_id`.
"""

from typing import Any
from uuid import uuid4

import msgspec

from common.wake import DISPATCHER
from scheduler.domain import events as ev
from scheduler.domain import instructions as ins

# Sockets join this group; the dispatcher asks it to announce its devices anew after a restart.
FLEET_GROUP = "nightshift.fleet"
# And this one: those of one server process are told when it stops.
SERVER_GROUP = f"nightshift.server.{uuid4().hex}"
ANNOUNCE = {"type": "fleet.announce"}
# To one socket: decide anew whether the device may work.
REFRESH = {"type": "device.refresh"}

_EVENTS: dict[str, type[ev.DeviceEvent]] = {
    c.__name__: c
    for c in (
        ev.DeviceConnected,
        ev.DeviceDisconnected,
        ev.DeviceBlocked,
        ev.DeviceReady,
        ev.LeaseProgress,
        ev.LeaseHandedBack,
        ev.ResultReported,
    )
}
_INSTRUCTIONS: dict[str, type[ins.DeviceInstruction]] = {
    c.__name__: c for c in (ins.SendLease, ins.SendRevoke, ins.SendAck, ins.CloseSession)
}


def event_to_message(event: ev.DeviceEvent) -> dict[str, Any]:
    """For `channel_layer.send(DISPATCHER, ...)`."""
    return {"type": "device.event", "name": type(event).__name__, "body": msgspec.to_builtins(event)}


def event_from_message(message: dict[str, Any]) -> ev.DeviceEvent:
    return msgspec.convert(message["body"], _EVENTS[message["name"]])


def instruction_to_message(instruction: ins.DeviceInstruction) -> dict[str, Any]:
    """For `channel_layer.send(instruction.session_id, ...)`."""
    if isinstance(instruction, ins.RefreshDevice):
        return REFRESH
    if isinstance(instruction, ins.AnnounceDevice):
        return ANNOUNCE
    return {
        "type": "device.instruction",
        "name": type(instruction).__name__,
        "body": msgspec.to_builtins(instruction),
    }


def instruction_from_message(message: dict[str, Any]) -> ins.DeviceInstruction:
    return msgspec.convert(message["body"], _INSTRUCTIONS[message["name"]])


__all__ = [
    "ANNOUNCE",
    "DISPATCHER",
    "FLEET_GROUP",
    "REFRESH",
    "event_from_message",
    "event_to_message",
    "instruction_from_message",
    "instruction_to_message",
]
