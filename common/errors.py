"""The one base class of everything that Nightshift refuses or fails at.

Each app has an `errors.py` whose classes derive from one app base, itself a `NightshiftError`. An error carries a
stable `code` for programs and a sentence for people; it knows nothing of HTTP (see `common.http`) or of
the wire (see `worker_protocol.wire.errors`).
"""

from typing import ClassVar


class NightshiftError(Exception):
    """Base of all typed errors.

    `code` is stable and appears in APIs, logs and on the wire. `field` names the input at fault, where there is
    one. The message is one sentence that says what is wrong and what to do; it never holds a secret.
    """

    code: ClassVar[str] = "internal"

    def __init__(self, message: str, *, field: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.field = field
