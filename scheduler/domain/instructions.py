"""What the state machine asks the world to do, after its changes are stored.

Instructions to a device go to the channel of its present session; each may be lost on the way and is then
sent again, so every one is idempotent by lease id.
"""

from dataclasses import dataclass
from uuid import UUID


@dataclass(frozen=True, slots=True)
class SendLease:
    """Give (or, unconfirmed, give again) a lease to a device; the fleet manager reads the lease's row."""

    session_id: str
    lease_id: UUID


@dataclass(frozen=True, slots=True)
class SendRevoke:
    """Tell a device to stop work on a lease at once. `reason`: expired, cancelled, blocked, superseded, unknown."""

    session_id: str
    lease_id: UUID
    reason: str


@dataclass(frozen=True, slots=True)
class SendAck:
    """Tell a device what became of its result, and what its owner earns by it. `refusal` is None when accepted."""

    session_id: str
    lease_id: UUID
    refusal: str | None
    earned_microusd: int


@dataclass(frozen=True, slots=True)
class CloseSession:
    """Close a device's socket: `removed` or `superseded` by a newer one."""

    session_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class RefreshDevice:
    """Let a device's socket decide anew whether the device may work."""

    session_id: str


@dataclass(frozen=True, slots=True)
class AnnounceDevice:
    """Let a socket say anew that its device is there, if it still is."""

    session_id: str


@dataclass(frozen=True, slots=True)
class CheckResult:
    """Check a reported result (shapes, finite, norm) and report `ResultChecked`."""

    lease_id: UUID


@dataclass(frozen=True, slots=True)
class AggregateRound:
    """Make the outer step of a round from its accepted results and report `RoundAggregated` or `RoundFailed`."""

    run_id: UUID
    round_index: int


DeviceInstruction = SendLease | SendRevoke | SendAck | CloseSession | RefreshDevice | AnnounceDevice
TaskInstruction = CheckResult | AggregateRound
Instruction = DeviceInstruction | TaskInstruction
