"""Every message of `nightshift.v1`, as typed structs. docs/protocol.md explains them one by one.

Control messages are JSON text frames `{"type": <tag>, ...}`. A reader ignores fields it does not know (newer
peers may send more) and refuses a message that lacks one it needs. Times are milliseconds, GPU time is
microseconds, hashes are lower-case hex SHA-256, ids are UUIDs in their canonical text form.
"""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

PROTOCOL = "nightshift.v1"
# One lease's steps, so that a result with a loss for each step fits a frame.
MAX_STEPS = 4_096
MAX_HELD_LEASES = 16
MAX_SHORT_CHARACTERS = 200

# A length stands beside each pattern because `$` alone lets a trailing line feed through.
_UUID_PATTERN = "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"
Uuid = Annotated[str, Meta(pattern=_UUID_PATTERN, max_length=36)]
Hex32 = Annotated[str, Meta(pattern="^[0-9a-f]{64}$", max_length=64)]  # 32 bytes
Hex64 = Annotated[str, Meta(pattern="^[0-9a-f]{128}$", max_length=128)]  # 64 bytes
Sha256 = Hex32
Count = Annotated[int, Meta(ge=0, le=2**53 - 1)]  # every language's numbers hold these exactly
Steps = Annotated[int, Meta(ge=0, le=MAX_STEPS)]
Percent = Annotated[int, Meta(ge=0, le=100)]
Short = Annotated[str, Meta(max_length=MAX_SHORT_CHARACTERS)]
Url = Annotated[str, Meta(max_length=2_000)]
Finite = Annotated[float, Meta(ge=-3.4e38, le=3.4e38)]
HandbackReason = Literal[
    "shutdown",
    "blocked",
    "busy",
    "too_big",
    "data_unavailable",
    "bad_program",
    "out_of_memory",
    "device_lost",
    "error",
]


class Message(msgspec.Struct, frozen=True, kw_only=True, tag_field="type"):
    """Base of all messages."""


# ---- device to server --------------------------------------------------------------------------------


class Hello(Message, frozen=True, tag="hello"):
    """First message: who calls, and which leases and blobs it still holds from an earlier socket."""

    device_id: Uuid
    agent: Short
    memory_bytes: Count = 0
    max_buffer_bytes: Count = 0
    leases: Annotated[list[Uuid], Meta(max_length=MAX_HELD_LEASES)] = []
    cached: Annotated[list[Sha256], Meta(max_length=64)] = []


class Auth(Message, frozen=True, tag="auth"):
    """Answer to the challenge: Ed25519 signature over `signing_bytes(nonce, device_id)`."""

    signature: Hex64


class Status(Message, frozen=True, tag="status", omit_defaults=True):
    """Sensor readings, at least every heartbeat; one that the device lacks is left out (unknown, never 0)."""

    battery_percent: Annotated[float, Meta(ge=0, le=100)] | None = None
    charging: bool | None = None
    network: Literal["wifi", "ethernet", "cellular", "none"] | None = None
    temperature_celsius: Annotated[float, Meta(ge=-60, le=150)] | None = None
    thermal: Literal["nominal", "fair", "serious", "critical"] | None = None


class Ready(Message, frozen=True, tag="ready"):
    """The device is free for a lease. Sent when it becomes so and with every heartbeat while it is."""


class Progress(Message, frozen=True, tag="progress"):
    """Work on a lease goes on; the first one, with step 0, confirms that the lease has arrived."""

    lease_id: Uuid
    step: Steps


class Result(Message, frozen=True, tag="result"):
    """A lease's work is done and its delta uploaded. Sent again until acknowledged."""

    lease_id: Uuid
    delta_sha256: Sha256
    delta_bytes: Count
    gpu_us: Count
    steps: Steps
    losses: Annotated[list[Finite], Meta(max_length=MAX_STEPS)]


class Handback(Message, frozen=True, tag="handback"):
    """The device gives a lease back unfinished."""

    lease_id: Uuid
    reason: HandbackReason
    detail: Short = ""


# ---- server to device --------------------------------------------------------------------------------


class Challenge(Message, frozen=True, tag="challenge"):
    """A fresh nonce to sign."""

    nonce: Hex32


class Welcome(Message, frozen=True, tag="welcome"):
    """The device is who it says. `blocked` is why it gets no work now, or null."""

    server_time_ms: Count
    heartbeat_ms: Annotated[int, Meta(ge=1_000, le=600_000)]
    max_frame_bytes: Count
    blocked: Short | None = None


class Terms(Message, frozen=True, tag="terms"):
    """When and on what terms this device works: the numbers in force, after the welcome and after each change."""

    opens_ms: Count | None
    closes_ms: Count | None
    battery_floor_percent: Percent
    battery_resume_percent: Percent
    charging_only: bool
    wifi_only: bool
    too_hot_celsius: Annotated[int, Meta(ge=-60, le=150)]
    microusd_per_gpu_hour: Count
    earned_microusd: Count


class Blob(msgspec.Struct, frozen=True, kw_only=True):
    """Where to fetch a blob (GET, ranges allowed) and what it must hash to."""

    sha256: Sha256
    size_bytes: Count
    url: Url


class Lease(Message, frozen=True, tag="lease"):
    """Work on one shard: fetch, train `steps` steps, PUT the delta to `upload_url`, report."""

    lease_id: Uuid
    program: Blob
    params: Blob
    slice: Blob
    steps: Annotated[int, Meta(ge=1, le=MAX_STEPS)]
    batch_size: Annotated[int, Meta(ge=1, le=2**31 - 1)]
    seed: Count
    learning_rate: Finite
    time_left_ms: Count
    upload_url: Url


class Ack(Message, frozen=True, tag="ack"):
    """What became of a result; the device may forget it."""

    lease_id: Uuid
    accepted: bool
    code: Short = ""
    earned_microusd: Count = 0


class Revoke(Message, frozen=True, tag="revoke"):
    """Stop work on a lease at once and forget it."""

    lease_id: Uuid
    reason: Short


class Blocked(Message, frozen=True, tag="blocked"):
    """Whether the device may work: `reason` says why not, null that it may. Answers every status."""

    reason: Short | None


class Drain(Message, frozen=True, tag="drain"):
    """The server goes away soon: keep what you hold, reconnect after `reconnect_ms`."""

    reconnect_ms: Annotated[int, Meta(ge=0, le=600_000)]


class Error(Message, frozen=True, tag="error"):
    """Something the device sent was refused. If `fatal`, the socket closes after it."""

    code: Short
    message: Short
    fatal: bool
    lease_id: Uuid | None = None


DeviceMessage = Hello | Auth | Status | Ready | Progress | Result | Handback
ServerMessage = Challenge | Welcome | Terms | Lease | Ack | Revoke | Blocked | Drain | Error
