"""Every message of `nightshift.v1`, as typed structs. docs/protocol.md explains them one by one.

Control messages are JSON text frames `{"type": <tag>, ...}`. A reader ignores fields it does not know (newer peers
may send more) and refuses a message that lacks one it needs. Times are milliseconds, GPU time is microseconds,
hashes are lower-case hex SHA-256, ids are UUIDs in their canonical text form.
"""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

PROTOCOL = "nightshift.v1"

Sha256 = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
Uuid = Annotated[str, Meta(pattern="^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$")]
Hex32 = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]  # 32 bytes
Hex64 = Annotated[str, Meta(pattern="^[0-9a-f]{128}$")]  # 64 bytes
Count = Annotated[int, Meta(ge=0, le=2**53 - 1)]
Short = Annotated[str, Meta(max_length=200)]
Finite = Annotated[float, Meta(ge=-3.4e38, le=3.4e38)]


class Message(msgspec.Struct, frozen=True, kw_only=True, tag_field="type"):
    """Base of all messages."""


# ---- device to server -------------------------------------------------------------------------------------------


class Hello(Message, tag="hello"):
    """First message: who calls, and which leases and blobs it still holds from an earlier socket."""

    device_id: Uuid
    agent: Short
    device_class: Short = ""
    memory_bytes: Count = 0
    speed_factor: Annotated[float, Meta(gt=0, le=1_000)] = 1.0
    leases: Annotated[list[Uuid], Meta(max_length=16)] = []
    cached: Annotated[list[Sha256], Meta(max_length=64)] = []


class Auth(Message, tag="auth"):
    """Answer to the challenge: Ed25519 signature over `signing_bytes(nonce, device_id)`."""

    signature: Hex64


class Status(Message, tag="status"):
    """Sensor readings, at least every heartbeat; a reading that the device lacks is left out (unknown, never 0)."""

    battery_percent: Annotated[float, Meta(ge=0, le=100)] | None = None
    charging: bool | None = None
    network: Literal["wifi", "ethernet", "cellular", "none"] | None = None
    temperature_celsius: Annotated[float, Meta(ge=-60, le=150)] | None = None
    thermal: Literal["nominal", "fair", "serious", "critical"] | None = None
    speed_factor: Annotated[float, Meta(gt=0, le=1_000)] | None = None


class Ready(Message, tag="ready"):
    """The device is free for a lease."""


class Progress(Message, tag="progress"):
    """Work on a lease goes on; the first one, with step 0, confirms that the lease has arrived."""

    lease_id: Uuid
    step: Count


class Result(Message, tag="result"):
    """A lease's work is done and its delta uploaded. Sent again until acknowledged."""

    lease_id: Uuid
    delta_sha256: Sha256
    delta_bytes: Count
    gpu_us: Count
    steps: Count
    losses: Annotated[list[Finite], Meta(max_length=10_000)]


class Handback(Message, tag="handback"):
    """The device gives a lease back unfinished."""

    lease_id: Uuid
    reason: Literal["shutdown", "blocked", "busy", "too_big", "data_unavailable", "bad_program", "out_of_memory", "device_lost", "error"]
    detail: Short = ""


# ---- server to device -------------------------------------------------------------------------------------------


class Challenge(Message, tag="challenge"):
    """A fresh nonce to sign."""

    nonce: Hex32


class Welcome(Message, tag="welcome"):
    """The device is who it says. `blocked` is why it gets no work now, or null."""

    server_time_ms: Count
    heartbeat_ms: Count
    max_frame_bytes: Count
    blocked: Short | None = None


class Blob(msgspec.Struct, frozen=True, kw_only=True):
    """Where to fetch a blob (GET, ranges allowed) and what it must hash to."""

    sha256: Sha256
    size_bytes: Count
    url: str


class Lease(Message, tag="lease"):
    """Work on one shard: fetch, train `steps` steps, PUT the delta to `upload_url`, report."""

    lease_id: Uuid
    program: Blob
    params: Blob
    slice: Blob
    steps: Count
    batch_size: Count
    seed: Count
    learning_rate: Finite
    time_left_ms: Count
    upload_url: str


class Ack(Message, tag="ack"):
    """What became of a result; the device may forget it."""

    lease_id: Uuid
    accepted: bool
    code: Short = ""
    earned_microusd: Count = 0


class Revoke(Message, tag="revoke"):
    """Stop work on a lease at once and forget it."""

    lease_id: Uuid
    reason: Short


class Blocked(Message, tag="blocked"):
    """Whether the device may work has changed: `reason` says why not, null that it may."""

    reason: Short | None


class Drain(Message, tag="drain"):
    """The server goes away soon: finish nothing new here, reconnect after `reconnect_ms`."""

    reconnect_ms: Count


class Error(Message, tag="error"):
    """Something the device sent was refused. If `fatal`, the socket closes after it."""

    code: Short
    message: Short
    fatal: bool
    lease_id: Uuid | None = None


DeviceMessage = Hello | Auth | Status | Ready | Progress | Result | Handback
ServerMessage = Challenge | Welcome | Lease | Ack | Revoke | Blocked | Drain | Error
