"""A bound on the bodies of requests while they arrive.

Daphne reads a body whole into memory before any view or permission sees the request, so that without a bound anyone
could make the server run out of it. What is over the bound is dropped byte by byte and answered with 413.
"""

from typing import Any

from daphne.http_protocol import WebRequest
from daphne.server import Server
from django.conf import settings
from twisted.internet.interfaces import IAddress

# Beside the file of the largest upload: a form's other fields and its boundaries.
FORM_BYTES = 64 * 1024
# Any: daphne and Twisted type their classes in part only, and some of it wrongly.
_WebRequest: Any = WebRequest


def bodies_bound(server: Server) -> None:
    """Have a listening server bound every body; WebSockets, which have bounds of their own, stay as they are."""
    factory: Any = server.http_factory
    build = factory.buildProtocol

    def build_bounded(address: IAddress) -> Any:
        protocol = build(address)
        protocol.requestFactory = BoundedRequest
        return protocol

    factory.buildProtocol = build_bounded


class BoundedRequest(_WebRequest):  # type: ignore[misc]
    """One request, its body bounded by its declared length and by what really comes."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._limit_bytes = settings.MAX_DATASET_BYTES + FORM_BYTES
        self._received_bytes = 0
        self._is_too_big = False

    def gotLength(self, length: int | None) -> None:  # noqa: N802 - Twisted's name
        self._is_too_big = length is not None and length > self._limit_bytes
        super().gotLength(0 if self._is_too_big else length)

    def handleContentChunk(self, data: bytes) -> None:  # noqa: N802 - Twisted's name
        self._received_bytes += len(data)
        self._is_too_big = self._is_too_big or self._received_bytes > self._limit_bytes
        if not self._is_too_big:
            super().handleContentChunk(data)

    def process(self) -> None:
        if self._is_too_big:
            self.content.close()
            said = f"A body has at most {self._limit_bytes:,} bytes. Send less in one request."
            self.basic_error(413, b"Content Too Large", said)
        else:
            super().process()
