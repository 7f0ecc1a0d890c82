"""What ends an agent, or a lease on it.

AgentError                  told to the person at the terminal, who must act; the agent exits with 1
├── UnsafeKeyFile           others can read the device's key
├── BadState                the state folder cannot be used
├── BadServerAddress        --server is not an http(s) address
├── NotPaired               no pairing yet, and no code given
├── AlreadyPaired           a code given to a device that has a pairing
├── PairingRefused          the server does not take the code
├── ServerUnreachable       nobody answers at the address
└── TurnedAway              the server does not want this device any more
LeaseFailed                 a lease goes back to the server, with one of the wire's reasons
"""

from typing import ClassVar

from worker_protocol.errors import WorkerProtocolError
from worker_protocol.wire.messages import HandbackReason


class AgentError(WorkerProtocolError):
    """Base of what only a person can mend."""

    code: ClassVar[str] = "agent"


class UnsafeKeyFile(AgentError):
    code = "unsafe_key_file"


class BadState(AgentError):
    code = "bad_state"


class BadServerAddress(AgentError):
    code = "bad_server_address"


class NotPaired(AgentError):
    code = "not_paired"


class AlreadyPaired(AgentError):
    code = "already_paired"


class PairingRefused(AgentError):
    code = "pairing_refused"


class ServerUnreachable(AgentError):
    code = "server_unreachable"


class TurnedAway(AgentError):
    code = "turned_away"


class LeaseFailed(Exception):
    """This device cannot finish a lease; `reason` and `detail` go into its hand-back."""

    def __init__(self, reason: HandbackReason, detail: str) -> None:
        super().__init__(detail)
        self.reason: HandbackReason = reason
        self.detail = detail
