"""Frames to messages and back. A frame is bounded before it is read; every failure is a `ProtocolError`."""

import re
from typing import TypeVar, get_args

import msgspec

from worker_protocol.wire.errors import BadField, BadJson, BinaryFrame, FrameTooBig, UnknownType
from worker_protocol.wire.limits import MAX_FRAME_BYTES
from worker_protocol.wire.messages import MAX_SHORT_CHARACTERS, DeviceMessage, Message, ServerMessage

Frame = str | bytes


def encode(message: Message) -> str:
    """The canonical text of a message: fields in their declared order, no spaces."""
    return _ENCODER.encode(message).decode()


def decode_device(frame: Frame) -> DeviceMessage:
    """Read a message that a device sent. Raises a FrameError, UnknownType or BadField."""
    return _decode(frame, _DEVICE_DECODERS)


def decode_server(frame: Frame) -> ServerMessage:
    """Read a message that the server sent. Raises a FrameError, UnknownType or BadField."""
    return _decode(frame, _SERVER_DECODERS)


class _Envelope(msgspec.Struct):
    type: str


_MessageT = TypeVar("_MessageT")
_ENCODER = msgspec.json.Encoder()
_ENVELOPE_DECODER = msgspec.json.Decoder(_Envelope)
_DEVICE_DECODERS: dict[str, msgspec.json.Decoder[DeviceMessage]] = {
    str(kind.__struct_config__.tag): msgspec.json.Decoder(kind) for kind in get_args(DeviceMessage)
}
_SERVER_DECODERS: dict[str, msgspec.json.Decoder[ServerMessage]] = {
    str(kind.__struct_config__.tag): msgspec.json.Decoder(kind) for kind in get_args(ServerMessage)
}
_FIELD_AT_FAULT = re.compile(r"field `(?P<missing>\w+)`|`\$\.(?P<wrong>[\w.\[\]]+)`")


def _decode(frame: Frame, decoders: dict[str, msgspec.json.Decoder[_MessageT]]) -> _MessageT:
    """Read the type first: an unknown one and a wrong field are different errors to the sender."""
    data = _bounded(frame)
    try:
        type_name = _ENVELOPE_DECODER.decode(data).type
        decoder = decoders.get(type_name)
        if decoder is None:
            raise UnknownType(type_name)
        return decoder.decode(data)
    except msgspec.ValidationError as error:
        raise _field_error(str(error)) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise BadJson from None


def _bounded(frame: Frame) -> bytes:
    if isinstance(frame, bytes):
        raise BinaryFrame
    if len(frame) > MAX_FRAME_BYTES:  # at least one byte a character, so this need not encode a huge text
        raise FrameTooBig
    try:
        data = frame.encode()
    except UnicodeEncodeError:  # a lone surrogate
        raise BadJson from None
    if len(data) > MAX_FRAME_BYTES:
        raise FrameTooBig
    return data


def _field_error(problem: str) -> BadField | BadJson:
    found = _FIELD_AT_FAULT.search(problem)
    if found is None:  # the frame's JSON is not an object
        return BadJson()
    field = found["missing"] or found["wrong"]
    return BadField(f"{field}: {problem.partition(' - at')[0]}."[:MAX_SHORT_CHARACTERS], field=field)
