"""What can go wrong between a device and the site.

WorkerProtocolError
├── ProtocolError           spoken on the socket, with a close code each (worker_protocol.wire.errors)
└── AgentError              told to the person at a device's terminal (worker_protocol.agent.errors)

None of these reaches an HTTP response, so they have no HTTP status.
"""

from typing import ClassVar

from common.errors import NightshiftError


class WorkerProtocolError(NightshiftError):
    """Base of this app's errors."""

    code: ClassVar[str] = "worker_protocol"
