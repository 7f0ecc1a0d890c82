"""What the scheduler's state machine is told. Frozen dataclasses; the time comes beside them, never inside.

Device events come from sockets, at least once and in order for one session. `session_id` names the socket
(its channel name), so that news of an old socket cannot disturb the newer one that took over.
"""

from dataclasses import dataclass
from typing import Literal
from uuid import UUID

# Why a device may not be given work now; `accounts.domain.policy` decides it.
BlockReason = Literal[
    "paused",
    "removed",
    "outside_window",
    "battery_low",
    "not_charging",
    "not_on_wifi",
    "too_hot",
    "self_test_failed",
]
# Why a device gives a lease back. Only `BLAMED` ones count against it.
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
BLAMED: frozenset[str] = frozenset({"bad_program", "out_of_memory", "device_lost", "error"})


@dataclass(frozen=True, slots=True)
class DeviceConnected:
    """A device has authenticated on a new socket. `resumed` are the leases that it still works on."""

    device_id: UUID
    session_id: str
    owner_id: int
    device_class: str
    speed_factor: float
    memory_bytes: int  # 0: unknown, as below
    max_buffer_bytes: int  # the largest single GPU buffer
    blocked: BlockReason | None
    resumed: tuple[UUID, ...] = ()
    cached: tuple[str, ...] = ()  # SHA-256 of data slices it holds, for placement


@dataclass(frozen=True, slots=True)
class DeviceDisconnected:
    device_id: UUID
    session_id: str


@dataclass(frozen=True, slots=True)
class DeviceBlocked:
    """A device's permission to work has changed: `blocked` says why it may not, None that it may."""

    device_id: UUID
    blocked: BlockReason | None


@dataclass(frozen=True, slots=True)
class DeviceReady:
    """A device says that it is free for a lease (and lives)."""

    device_id: UUID
    session_id: str


@dataclass(frozen=True, slots=True)
class LeaseProgress:
    """A device works on a lease; the first one confirms that the lease reached it."""

    device_id: UUID
    lease_id: UUID
    step: int


@dataclass(frozen=True, slots=True)
class LeaseHandedBack:
    device_id: UUID
    lease_id: UUID
    reason: HandbackReason
    detail: str = ""


@dataclass(frozen=True, slots=True)
class ResultReported:
    """A device has uploaded a result; it is not checked yet."""

    device_id: UUID
    lease_id: UUID
    delta_sha256: str
    delta_bytes: int
    gpu_us: int
    steps: int
    losses: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class ResultChecked:
    """The check of a reported result has ended. `refusal` is None, or the code of why it is refused."""

    lease_id: UUID
    refusal: str | None
    delta_norm: float


@dataclass(frozen=True, slots=True)
class DeviceChanged:
    """An owner has changed what a device may do; its socket must decide anew whether it may work."""

    device_id: UUID


@dataclass(frozen=True, slots=True)
class DeviceRemoved:
    """An owner has removed a device; its socket must end."""

    device_id: UUID


@dataclass(frozen=True, slots=True)
class RunAdded:
    """A training run may start; its row and slices are in the database."""

    run_id: UUID


@dataclass(frozen=True, slots=True)
class RunCancelled:
    run_id: UUID


@dataclass(frozen=True, slots=True)
class RunPaused:
    """A run is to get no new lease until it is resumed; what is leased goes on, and is paid."""

    run_id: UUID


@dataclass(frozen=True, slots=True)
class RunResumed:
    run_id: UUID


@dataclass(frozen=True, slots=True)
class RoundAggregated:
    """The outer step of a round is done: the next parameters and their metrics on the validation split."""

    run_id: UUID
    round_index: int
    params_sha256: str
    outer_state_sha256: str
    validation_loss: float
    validation_metric: float


@dataclass(frozen=True, slots=True)
class RoundFailed:
    """The outer step cannot be made (diverged, unreadable); the run ends with `code` and `message`."""

    run_id: UUID
    round_index: int
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed: deadlines, benches and resends are looked at."""


DeviceEvent = (
    DeviceConnected
    | DeviceDisconnected
    | DeviceBlocked
    | DeviceReady
    | LeaseProgress
    | LeaseHandedBack
    | ResultReported
)
# What services and tasks tell through the inbox.
InboxEvent = ResultChecked | RunAdded | RunCancelled | RunPaused | RunResumed | RoundAggregated | RoundFailed
Event = DeviceEvent | InboxEvent | DeviceChanged | DeviceRemoved | Tick
