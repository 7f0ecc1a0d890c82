"""Both ends of one `nightshift.v1` socket as state machines without I/O.

A session is fed frames and the time; it returns the messages its user must act on, and collects the frames to
put on the socket:

    messages = session.receive(frame, now_ms)
    for frame in session.frames_to_send(): ...
    if session.close_code is not None: ...   # close the socket with it, after those frames

`now_ms` is any steady clock in integer milliseconds. A session never raises for what its peer sends; it fails
itself (`close_code`). Sending a message that the state does not allow is its user's mistake and raises
`WrongState`.

             hello ▸            ◂ challenge, auth ▸            ◂ welcome
    CONNECTING ──────────────────────▶ CHALLENGED ──────────────────────▶ READY
        └───────────────────────────────────┴───────── any fatal error ─────┴──▶ CLOSED
"""

from enum import StrEnum
from typing import ClassVar

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from worker_protocol.wire import messages as msg
from worker_protocol.wire.codec import Frame, decode_device, decode_server, encode
from worker_protocol.wire.errors import AuthTimeout, ProtocolError, Silent, TooFast, UnknownType, WrongState
from worker_protocol.wire.limits import (
    AUTH_TIMEOUT_MS,
    BURST_MESSAGES,
    HEARTBEAT_MS,
    MAX_FRAME_BYTES,
    MESSAGES_PER_SECOND,
    MISSED_HEARTBEATS,
    TokenBucket,
)
from worker_protocol.wire.signing import sign, signature_is_valid


class SessionState(StrEnum):
    CONNECTING = "CONNECTING"
    CHALLENGED = "CHALLENGED"
    READY = "READY"
    CLOSED = "CLOSED"


# Which messages each end may send in each state.
FROM_DEVICE: dict[SessionState, tuple[type[msg.Message], ...]] = {
    SessionState.CONNECTING: (msg.Hello,),
    SessionState.CHALLENGED: (msg.Auth,),
    SessionState.READY: (msg.Status, msg.Ready, msg.Progress, msg.Result, msg.Handback),
    SessionState.CLOSED: (),
}
FROM_SERVER: dict[SessionState, tuple[type[msg.Message], ...]] = {
    SessionState.CONNECTING: (msg.Challenge, msg.Error),
    SessionState.CHALLENGED: (msg.Welcome, msg.Error),
    SessionState.READY: (msg.Terms, msg.Lease, msg.Ack, msg.Revoke, msg.Blocked, msg.Drain, msg.Error),
    SessionState.CLOSED: (),
}


class _Session:
    """What both ends share: the state, the frames to send, the deadline of silence."""

    sends: ClassVar[dict[SessionState, tuple[type[msg.Message], ...]]]
    receives: ClassVar[dict[SessionState, tuple[type[msg.Message], ...]]]

    def __init__(self, *, now_ms: int) -> None:
        self.state = SessionState.CONNECTING
        self.close_code: int | None = None
        self.heartbeat_ms = HEARTBEAT_MS
        self._opened_ms = now_ms
        self._heard_ms = now_ms
        self._frames: list[str] = []

    @property
    def deadline_ms(self) -> int:
        """When this session fails if nothing (or, before READY, no authentication) comes."""
        if self.state is SessionState.READY:
            return self._heard_ms + MISSED_HEARTBEATS * self.heartbeat_ms
        return self._opened_ms + AUTH_TIMEOUT_MS

    def frames_to_send(self) -> list[str]:
        """Frames collected since the last call, in order."""
        frames, self._frames = self._frames, []
        return frames

    def send(self, message: msg.Message) -> None:
        self._require(message, self.sends)
        self._frames.append(encode(message))

    def fail(self, error: ProtocolError) -> None:
        """End the session because of `error`."""
        self.close(error.close_code)

    def close(self, close_code: int) -> None:
        if self.state is not SessionState.CLOSED:
            self.state = SessionState.CLOSED
            self.close_code = close_code

    def _fail_if_overdue(self, now_ms: int) -> None:
        if self.state is not SessionState.CLOSED and now_ms > self.deadline_ms:
            self.fail(Silent() if self.state is SessionState.READY else AuthTimeout())

    def _require(
        self, message: msg.Message, allowed: dict[SessionState, tuple[type[msg.Message], ...]]
    ) -> None:
        if not isinstance(message, allowed[self.state]):
            raise WrongState(str(message.__struct_config__.tag), self.state)


class ServerSession(_Session):
    """The server's end. Its user looks the device up on `Auth` and calls `welcome` or `fail`."""

    sends = FROM_SERVER
    receives = FROM_DEVICE

    def __init__(self, *, nonce: str, now_ms: int) -> None:
        super().__init__(now_ms=now_ms)
        self.hello: msg.Hello | None = None
        # Leases that the device is known to hold, in the order it took them.
        self.leases: dict[str, None] = {}
        self._nonce = nonce
        self._bucket = TokenBucket(rate_per_s=MESSAGES_PER_SECOND, burst=BURST_MESSAGES, now_ms=now_ms)

    def receive(self, frame: Frame, now_ms: int) -> list[msg.DeviceMessage]:
        """Take a frame off the socket; returns the message to act on, if there is one."""
        if self.state is SessionState.CLOSED:
            return []
        self._fail_if_overdue(now_ms)
        try:
            if not self._bucket.take(now_ms):
                raise TooFast
            message = decode_device(frame)
            self._require(message, self.receives)
        except ProtocolError as error:
            self.fail(error)
            return []
        self._heard_ms = max(self._heard_ms, now_ms)
        return self._take(message)

    def tick(self, now_ms: int) -> None:
        """Fail if the device has been silent, or has not authenticated, for too long."""
        self._fail_if_overdue(now_ms)

    def is_signed_by(self, public_key: bytes, auth: msg.Auth) -> bool:
        """Whether the holder of `public_key` has answered this session's challenge."""
        return self.hello is not None and signature_is_valid(
            public_key=public_key, signature=auth.signature, nonce=self._nonce, device_id=self.hello.device_id
        )

    def welcome(self, *, server_time_ms: int, blocked: str | None) -> None:
        self.send(
            msg.Welcome(
                server_time_ms=server_time_ms,
                heartbeat_ms=self.heartbeat_ms,
                max_frame_bytes=MAX_FRAME_BYTES,
                blocked=blocked,
            )
        )
        self.state = SessionState.READY
        if self.hello is not None:
            self.leases = dict.fromkeys(self.hello.leases)

    def send(self, message: msg.Message) -> None:
        super().send(message)
        if isinstance(message, msg.Ack | msg.Revoke):
            self.leases.pop(message.lease_id, None)

    def fail(self, error: ProtocolError) -> None:
        """Answer with an error frame; close too if it is fatal, as every error is before the welcome."""
        if self.state is SessionState.CLOSED:
            return
        fatal = error.fatal or self.state is not SessionState.READY
        self.send(
            msg.Error(
                code=error.code,
                message=error.message[: msg.MAX_SHORT_CHARACTERS],
                fatal=fatal,
                lease_id=error.lease_id,
            )
        )
        if fatal:
            self.close(error.close_code)

    def _take(self, message: msg.DeviceMessage) -> list[msg.DeviceMessage]:
        match message:
            case msg.Hello():
                self.hello = message
                self.send(msg.Challenge(nonce=self._nonce))
                self.state = SessionState.CHALLENGED
                return []
            case msg.Progress():
                self.leases[message.lease_id] = None
                if len(self.leases) > msg.MAX_HELD_LEASES:
                    del self.leases[next(iter(self.leases))]
            case msg.Handback():
                self.leases.pop(message.lease_id, None)
        return [message]


class DeviceSession(_Session):
    """The device's end: it greets, answers the challenge, and says when a status is due."""

    sends = FROM_DEVICE
    receives = FROM_SERVER

    def __init__(self, *, hello: msg.Hello, key: Ed25519PrivateKey, now_ms: int) -> None:
        super().__init__(now_ms=now_ms)
        self._hello = hello
        self._key = key
        self._status_sent_ms: int | None = None
        self.send(hello)

    def receive(self, frame: Frame, now_ms: int) -> list[msg.ServerMessage]:
        """Take a frame off the socket; returns the message to act on, if there is one."""
        if self.state is SessionState.CLOSED:
            return []
        self._heard_ms = max(self._heard_ms, now_ms)
        try:
            message = decode_server(frame)
            self._require(message, self.receives)
        except UnknownType:  # from a newer server
            return []
        except ProtocolError as error:
            self.fail(error)
            return []
        return self._take(message)

    def tick(self, now_ms: int) -> None:
        """Fail if the server has been silent for too long."""
        self._fail_if_overdue(now_ms)

    def status_is_due(self, now_ms: int) -> bool:
        """Whether the next heartbeat's status must be sent now."""
        if self.state is not SessionState.READY:
            return False
        return self._status_sent_ms is None or now_ms - self._status_sent_ms >= self.heartbeat_ms

    def send_status(self, status: msg.Status, now_ms: int) -> None:
        self.send(status)
        self._status_sent_ms = now_ms

    def _take(self, message: msg.ServerMessage) -> list[msg.ServerMessage]:
        match message:
            case msg.Challenge():
                self.state = SessionState.CHALLENGED
                signature = sign(self._key, nonce=message.nonce, device_id=self._hello.device_id)
                self.send(msg.Auth(signature=signature))
                return []
            case msg.Welcome():
                self.heartbeat_ms = message.heartbeat_ms
                self.state = SessionState.READY
        return [message]
