"""Everything that can be wrong on the wire.

ProtocolError
├── FrameError              a frame that is not a message
│   ├── BinaryFrame         binary_frame       fatal
│   ├── FrameTooBig         frame_too_big      fatal
│   └── BadJson             bad_json           fatal
├── MessageError            a message that cannot be taken
│   ├── UnknownType         unknown_type
│   ├── BadField            bad_field
│   └── WrongState          wrong_state        fatal
├── IdentityError           a device that may not have this socket
│   ├── AuthFailed          auth_failed        fatal
│   ├── DeviceRemoved       device_removed     fatal
│   └── Superseded          superseded         fatal
├── BoundError              a peer past a bound
│   ├── TooFast             too_fast           fatal
│   ├── AuthTimeout         auth_timeout       fatal
│   ├── Silent              silent             fatal
│   └── SlowReader          slow_reader        fatal
└── ServerError             not the device's fault
    ├── Busy                busy
    └── Internal            internal           fatal

An error that is not fatal answers one message and leaves the socket open; before the welcome every error is
fatal, for a stranger gets no second try. A fatal one closes the socket with its `close_code`.
"""

from typing import ClassVar

from worker_protocol.errors import WorkerProtocolError
from worker_protocol.wire.limits import MAX_FRAME_BYTES


class ProtocolError(WorkerProtocolError):
    """Base of the wire's errors; `lease_id` names the lease that the refused message was about, if any."""

    code: ClassVar[str] = "protocol"
    fatal: ClassVar[bool] = True
    close_code: ClassVar[int]

    def __init__(self, message: str, *, field: str | None = None, lease_id: str | None = None) -> None:
        super().__init__(message, field=field)
        self.lease_id = lease_id


class FrameError(ProtocolError):
    """A frame that is not a message."""


class BinaryFrame(FrameError):
    code = "binary_frame"
    close_code = 4010

    def __init__(self) -> None:
        super().__init__("Messages are text frames; send tensors over HTTP.")


class FrameTooBig(FrameError):
    code = "frame_too_big"
    close_code = 4011

    def __init__(self) -> None:
        super().__init__(f"A frame has at most {MAX_FRAME_BYTES} bytes; send less in one message.")


class BadJson(FrameError):
    code = "bad_json"
    close_code = 4012

    def __init__(self) -> None:
        super().__init__("The frame is not a JSON object; send one message as one JSON object.")


class MessageError(ProtocolError):
    """A message that cannot be taken."""


class UnknownType(MessageError):
    code = "unknown_type"
    fatal = False
    close_code = 4000

    def __init__(self, type_name: str) -> None:
        super().__init__(f"There is no message type {type_name[:40]!r} in this direction.", field="type")


class BadField(MessageError):
    code = "bad_field"
    fatal = False
    close_code = 4001


class WrongState(MessageError):
    code = "wrong_state"
    close_code = 4002

    def __init__(self, type_name: str, state: str) -> None:
        super().__init__(f"A message of type {type_name!r} is not allowed in state {state}.", field="type")


class IdentityError(ProtocolError):
    """A device that may not have this socket."""


class AuthFailed(IdentityError):
    code = "auth_failed"
    close_code = 4003

    def __init__(self) -> None:
        super().__init__("No device with this id has the key that signed; pair the device again.")


class DeviceRemoved(IdentityError):
    code = "device_removed"
    close_code = 4004

    def __init__(self) -> None:
        super().__init__("The owner has removed this device; pair it again to let it work.")


class Superseded(IdentityError):
    code = "superseded"
    close_code = 4005

    def __init__(self) -> None:
        super().__init__("The same device has connected anew; only its newest socket is used.")


class BoundError(ProtocolError):
    """A peer past a bound."""


class TooFast(BoundError):
    code = "too_fast"
    close_code = 4006

    def __init__(self) -> None:
        super().__init__("Too many messages; send at most 20 a second.")


class AuthTimeout(BoundError):
    code = "auth_timeout"
    close_code = 4007

    def __init__(self) -> None:
        super().__init__("No valid hello and auth in time; send them right after connecting.")


class Silent(BoundError):
    code = "silent"
    close_code = 4008

    def __init__(self) -> None:
        super().__init__("Nothing was heard for three heartbeats; connect again.")


class SlowReader(BoundError):
    code = "slow_reader"
    close_code = 4009

    def __init__(self) -> None:
        super().__init__("Messages are not read as fast as they come; read them, then connect again.")


class ServerError(ProtocolError):
    """Not the device's fault."""


class Busy(ServerError):
    code = "busy"
    fatal = False
    close_code = 4013

    def __init__(self, *, lease_id: str | None = None) -> None:
        super().__init__(
            "The server could not take the message now; send it again in a few seconds.", lease_id=lease_id
        )


class Internal(ServerError):
    code = "internal"
    close_code = 4014

    def __init__(self) -> None:
        super().__init__("The server failed to handle a message; connect again.")


ALL_ERRORS: tuple[type[ProtocolError], ...] = (
    BinaryFrame,
    FrameTooBig,
    BadJson,
    UnknownType,
    BadField,
    WrongState,
    AuthFailed,
    DeviceRemoved,
    Superseded,
    TooFast,
    AuthTimeout,
    Silent,
    SlowReader,
    Busy,
    Internal,
)
