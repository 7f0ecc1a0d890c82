"""Stand-ins for a site, over real sockets: one that keeps blobs, one that a device logs in to."""

import asyncio
import hashlib
import re
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar, TypeVar

from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed

from tests.worker_protocol.conftest import KEY
from worker_protocol.wire import messages as msg
from worker_protocol.wire.errors import AuthFailed, ProtocolError
from worker_protocol.wire.session import ServerSession, SessionState

NONCE = "5a" * 32
PATIENCE_S = 10
STALL_S = 60
_MessageT = TypeVar("_MessageT", bound=msg.Message)


class BlobSite:
    """Blobs by hash, and uploads by path. Each fault is used up by the request that meets it."""

    def __init__(self) -> None:
        self.url = ""
        self.blobs: dict[str, bytes] = {}
        self.uploads: dict[str, bytes] = {}
        self.requests: list[str] = []
        self.faults: list[
            int | str | None
        ] = []  # a status to answer, "cut", "spoil", "stall", "gap"; None for none

    def add(self, data: bytes) -> msg.Blob:
        sha256 = hashlib.sha256(data).hexdigest()
        self.blobs[sha256] = data
        return msg.Blob(sha256=sha256, size_bytes=len(data), url=f"{self.url}/{sha256}")


class _BlobHandler(BaseHTTPRequestHandler):
    site: ClassVar[BlobSite]
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        requested = self.headers.get("Range", "")
        self.site.requests.append(f"GET {requested}".strip())
        fault = self.site.faults.pop(0) if self.site.faults else None
        data = self.site.blobs.get(self.path.strip("/"))
        if data is None or isinstance(fault, int):
            self._answer(fault if isinstance(fault, int) else 404)
            return
        start = int(requested.removeprefix("bytes=").rstrip("-")) if requested else 0
        rest = data[start:] if fault != "spoil" else bytes(len(data) - start)
        if fault == "stall":
            self._answer(206 if requested else 200, rest, cut=True)
            self.wfile.flush()
            threading.Event().wait(STALL_S)
            return
        self._answer(206 if requested else 200, rest, cut=fault == "cut")

    def do_HEAD(self) -> None:
        self.site.requests.append("HEAD")
        self._answer(200, offset=len(self.site.uploads.get(self.path, b"")))

    def do_OPTIONS(self) -> None:
        """A browser's page comes from elsewhere and asks first."""
        self._answer(204)

    def end_headers(self) -> None:
        for what in ("Origin", "Methods", "Headers"):
            self.send_header(f"Access-Control-Allow-{what}", "GET, HEAD, PUT" if what == "Methods" else "*")
        self.send_header("Access-Control-Expose-Headers", "Upload-Offset")
        super().end_headers()

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        requested = self.headers.get("Content-Range", "")
        self.site.requests.append(f"PUT {requested}".strip())
        fault = self.site.faults.pop(0) if self.site.faults else None
        if fault == "gap":  # the upload that was there is of other content
            self.site.uploads[self.path] = b""
            fault = 409
        if isinstance(fault, int):
            self._answer(fault, offset=len(self.site.uploads.get(self.path, b"")))
            return
        found = re.fullmatch(r"bytes (\d+)-\d+/(\d+)", requested)
        first, total = map(int, found.groups()) if found else (0, len(body))
        stored = self.site.uploads[self.path] = self.site.uploads.get(self.path, b"")[:first] + body
        if len(stored) < total:
            self._answer(202, offset=len(stored))
            return
        right = hashlib.sha256(stored).hexdigest() == self.headers["X-Content-SHA256"]
        self._answer(201 if right else 422, offset=len(stored))

    def _answer(
        self, status: int, body: bytes = b"", *, offset: int | None = None, cut: bool = False
    ) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        if offset is not None:
            self.send_header("Upload-Offset", str(offset))
        self.end_headers()
        self.wfile.write(body[: len(body) // 2] if cut else body)
        self.close_connection = cut

    def log_message(self, *args: object) -> None:
        pass


@contextmanager
def blob_site() -> Iterator[BlobSite]:
    site = BlobSite()
    handler = type("Handler", (_BlobHandler,), {"site": site})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    site.url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    try:
        yield site
    finally:
        server.shutdown()
        server.server_close()


class SocketSite:
    """The other end of a device's socket, played by a test."""

    def __init__(self, *, patience_s: float = PATIENCE_S, answers_status: bool = False) -> None:
        self.url = ""
        self.patience_s = patience_s
        self.answers_status = answers_status  # as a real site does, so that a slow test is no silence
        self.hellos: list[msg.Hello] = []
        self.blocked: str | None = None
        self.refusal: ProtocolError | None = None
        self.heard: asyncio.Queue[msg.Message] = asyncio.Queue()
        self.ended: asyncio.Queue[int | None] = asyncio.Queue()  # close codes as we received them
        self._socket: ServerConnection | None = None
        self._session: ServerSession | None = None

    async def hears(self, kind: type[_MessageT]) -> _MessageT:
        """The next message of this kind; others are passed over."""
        async with asyncio.timeout(self.patience_s):
            while True:
                message = await self.heard.get()
                if isinstance(message, kind):
                    return message

    async def says(self, message: msg.Message) -> None:
        assert self._session is not None
        if isinstance(message, msg.Blocked):
            self.blocked = message.reason
        self._session.send(message)
        await self._flush()

    async def closes(self, close_code: int) -> None:
        assert self._socket is not None
        await self._socket.close(close_code)

    async def drops(self) -> None:
        """End the connection without a word, as a network does; what is heard next comes on a new one."""
        assert self._socket is not None
        self._socket.transport.abort()
        await self.ended.get()
        self.drain()

    def drain(self) -> list[msg.Message]:
        """All that has been heard and not looked at."""
        return [self.heard.get_nowait() for _ in range(self.heard.qsize())]

    async def handle(self, socket: ServerConnection) -> None:
        started = time.monotonic()
        session = ServerSession(nonce=NONCE, now_ms=0)
        session.heartbeat_ms = 1_000
        self._socket, self._session = socket, session
        with suppress(ConnectionClosed):
            async for frame in socket:
                for message in session.receive(frame, round(1000 * (time.monotonic() - started))):
                    self._answer(message, session)
                await self._flush()
                if session.close_code is not None:
                    await socket.close(session.close_code)
        self.ended.put_nowait(socket.close_code)

    def _answer(self, message: msg.Message, session: ServerSession) -> None:
        if not isinstance(message, msg.Auth):
            self.heard.put_nowait(message)
            if isinstance(message, msg.Status) and self.answers_status:
                session.send(msg.Blocked(reason=self.blocked))
            return
        assert session.hello is not None
        self.hellos.append(session.hello)
        if not session.is_signed_by(KEY.public_key().public_bytes_raw(), message):
            session.fail(AuthFailed())
        elif self.refusal is not None:
            session.fail(self.refusal)
        else:
            session.welcome(server_time_ms=0, blocked=self.blocked)

    async def _flush(self) -> None:
        assert self._session is not None
        assert self._socket is not None
        for frame in self._session.frames_to_send():
            await self._socket.send(frame)
        assert self._session.state is not SessionState.CONNECTING


@asynccontextmanager
async def socket_site(
    port: int = 0, *, patience_s: float = PATIENCE_S, answers_status: bool = False
) -> AsyncIterator[SocketSite]:
    site = SocketSite(patience_s=patience_s, answers_status=answers_status)
    async with serve(site.handle, "127.0.0.1", port, subprotocols=[msg.PROTOCOL]) as server:  # type: ignore[list-item]
        site.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        yield site
