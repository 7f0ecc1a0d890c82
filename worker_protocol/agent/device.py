"""The socket of a device: logs in, carries messages, and comes back after it drops.

Only the first connection must succeed; from then on the device waits for its site as long as it takes, with
exponential backoff and full jitter. What it works on does not notice (see `workbench`).
"""

import asyncio
import logging
import random
import time
from collections.abc import Callable
from contextlib import suppress

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidURI
from websockets.typing import Subprotocol

from common.clock import utc_now
from worker_protocol.agent.backoff import backoff_s
from worker_protocol.agent.cache import BlobCache
from worker_protocol.agent.errors import TurnedAway
from worker_protocol.agent.keys import Identity
from worker_protocol.agent.pairing import socket_address, unreachable
from worker_protocol.agent.progress import Display
from worker_protocol.agent.terms import terms_words
from worker_protocol.agent.trainer import Trainer
from worker_protocol.agent.transport import Transport
from worker_protocol.agent.workbench import Workbench
from worker_protocol.wire import errors as wire_errors
from worker_protocol.wire import messages as msg
from worker_protocol.wire.session import DeviceSession, SessionState

log = logging.getLogger("nightshift.agent")

AGENT = "nightshift-agent/0.1.0"
TICK_S = 0.25
SENSORS_EVERY_MS = 2_000
RECONNECT_BASE_S = 1.0
RECONNECT_CAP_S = 30.0
OPEN_TIMEOUT_S = 10.0
# A lease is the server's largest message, far below this.
MAX_SERVER_FRAME_BYTES = 256 * 1024
MAX_CACHED_IN_HELLO = 64
# How long the last messages may take when the device stops.
FAREWELL_S = 2.0

# A connection that lasted this long was a good one: the next tries start from short waits again.
STABLE_MS = 30_000

# Errors after which coming back would change nothing; their sentence says what to do instead.
FINAL_ERRORS = {
    error.close_code: error
    for error in (wire_errors.AuthFailed, wire_errors.DeviceRemoved, wire_errors.Superseded)
}
FINAL_CODES = {error.code for error in FINAL_ERRORS.values()}


def steady_ms() -> int:
    return time.monotonic_ns() // 1_000_000


class Device:
    """A paired device on line. `run` returns when `stop` is set, and raises an AgentError a person must act on."""

    def __init__(
        self,
        *,
        identity: Identity,
        transport: Transport,
        trainer: Trainer,
        cache: BlobCache,
        display: Display,
        read_status: Callable[[], msg.Status],
        memory_bytes: int,
        rng: random.Random,
    ) -> None:
        self._identity = identity
        self._cache = cache
        self._display = display
        self._read_status = read_status
        self._memory_bytes = memory_bytes
        self._rng = rng
        self._bench = Workbench(
            transport=transport,
            trainer=trainer,
            display=display,
            memory_bytes=memory_bytes,
            say=self._say,
            clock_ms=steady_ms,
        )
        self._session: DeviceSession | None = None
        self._outgoing = asyncio.Event()
        self._welcomed = False
        self._status = msg.Status()
        self._sensors_due_ms = 0
        self._blocked: str | None = None
        self._terms_shown = ""
        self._drain_s: float | None = None

    async def run(self, stop: asyncio.Event) -> None:
        attempt = 0
        self._bench.warm_up()
        try:
            while not stop.is_set():
                opened_ms = steady_ms()
                try:
                    async with self._connect() as socket:
                        await self._serve(socket, stop)
                except (OSError, InvalidHandshake, InvalidURI, TimeoutError) as error:
                    if not self._welcomed:
                        raise unreachable(self._identity.pairing.server, error) from error
                attempt = 0 if steady_ms() - opened_ms > STABLE_MS else attempt + 1
                await self._wait_to_reconnect(attempt, stop)
        finally:
            self._bench.close()

    # ---- one socket

    def _connect(self) -> connect:
        return connect(
            socket_address(self._identity.pairing.server),
            subprotocols=[Subprotocol(msg.PROTOCOL)],
            open_timeout=OPEN_TIMEOUT_S,
            close_timeout=FAREWELL_S,
            max_size=MAX_SERVER_FRAME_BYTES,
        )

    async def _serve(self, socket: ClientConnection, stop: asyncio.Event) -> None:
        """Live on one socket until it drops or the device stops."""
        session = self._session = DeviceSession(
            hello=self._hello(), key=self._identity.key, now_ms=steady_ms()
        )
        self._outgoing.set()
        stopping = asyncio.create_task(stop.wait())
        parts = [
            asyncio.create_task(part)
            for part in (self._read(socket, session), self._write(socket, session), self._tick(session))
        ]
        try:
            await asyncio.wait([stopping, *parts], return_when=asyncio.FIRST_COMPLETED)
            if stop.is_set():
                await self._say_farewell(socket, session)
            if session.close_code is not None:
                log.warning("giving up this connection (%d)", session.close_code)
                await socket.close(session.close_code)
            for part in parts:
                if part.done():
                    part.result()
        finally:
            self._session = None
            for task in (stopping, *parts):
                task.cancel()
            await asyncio.gather(stopping, *parts, return_exceptions=True)

    async def _read(self, socket: ClientConnection, session: DeviceSession) -> None:
        with suppress(ConnectionClosed):
            async for frame in socket:
                for message in session.receive(frame, steady_ms()):
                    self._handle(message, session)
                self._outgoing.set()
        final = FINAL_ERRORS.get(socket.close_code or 0)
        if final is not None:
            raise TurnedAway(final().message)

    async def _write(self, socket: ClientConnection, session: DeviceSession) -> None:
        with suppress(ConnectionClosed):
            while session.close_code is None:
                await self._outgoing.wait()
                self._outgoing.clear()
                for frame in session.frames_to_send():
                    await socket.send(frame)

    async def _tick(self, session: DeviceSession) -> None:
        """Heartbeats, sensors, progress: what time brings rather than the server."""
        while session.close_code is None:
            await asyncio.sleep(TICK_S)
            now_ms = steady_ms()
            session.tick(now_ms)
            if session.state is SessionState.READY:
                self._bench.tick()
                self._report_status(session, now_ms)
            self._outgoing.set()

    async def _say_farewell(self, socket: ClientConnection, session: DeviceSession) -> None:
        """Hand the lease back and see it sent, if the socket takes it in time."""
        self._bench.hand_back("shutdown")
        with suppress(ConnectionClosed, TimeoutError):
            async with asyncio.timeout(FAREWELL_S):
                for frame in session.frames_to_send():
                    await socket.send(frame)
                await socket.close()

    async def _wait_to_reconnect(self, attempt: int, stop: asyncio.Event) -> None:
        if stop.is_set():
            return
        wait_s = backoff_s(attempt, base_s=RECONNECT_BASE_S, cap_s=RECONNECT_CAP_S, rng=self._rng)
        wait_s += self._drain_s or 0.0
        self._drain_s = None
        self._display.say(f"connection lost, trying again in {wait_s:.1f} s")
        with suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), wait_s)

    # ---- messages

    def _hello(self) -> msg.Hello:
        return msg.Hello(
            device_id=self._identity.pairing.device_id,
            agent=AGENT,
            memory_bytes=self._memory_bytes,
            leases=self._bench.held,
            cached=self._cache.held(MAX_CACHED_IN_HELLO),
        )

    def _say(self, message: msg.Message) -> None:
        """Put a message on the socket, if one is open; what matters is said again on the next one."""
        if self._session is not None and self._session.state is SessionState.READY:
            self._session.send(message)
            self._outgoing.set()

    def _handle(self, message: msg.ServerMessage, session: DeviceSession) -> None:
        match message:
            case msg.Welcome():
                self._welcomed = True
                self._display.say(f"connected to {self._identity.pairing.server}")
                self._report_status(session, steady_ms())
                self._bench.on_new_socket()
                self._obey_verdict(message.blocked)
                self._say_ready()
            case msg.Blocked():
                was_blocked = self._blocked is not None
                self._obey_verdict(message.reason)
                if was_blocked:
                    self._say_ready()
            case msg.Terms():
                self._show_terms(message)
            case msg.Lease():
                self._bench.take(message)
            case msg.Revoke():
                self._bench.revoke(message)
                self._say_ready()
            case msg.Ack():
                self._bench.acknowledge(message)
            case msg.Drain():
                self._drain_s = message.reconnect_ms / 1000
            case msg.Error():
                self._hear_error(message)

    def _hear_error(self, error: msg.Error) -> None:
        if error.code == wire_errors.Busy.code and error.lease_id is not None:
            self._bench.refused_as_busy(error.lease_id)
        elif error.code not in FINAL_CODES:  # those end the agent, which then says the same
            log.warning("the server refused a message: %s (%s)", error.message, error.code)

    def _obey_verdict(self, blocked: str | None) -> None:
        """The server says whether this device may work; work stops at once when it may not."""
        if blocked is not None:
            self._bench.hand_back("blocked")
        if blocked != self._blocked:
            self._display.say(_verdict_words(blocked))
        self._blocked = blocked

    def _show_terms(self, terms: msg.Terms) -> None:
        words = terms_words(terms, now=utc_now())
        if words != self._terms_shown:
            self._display.say(words)
        self._terms_shown = words

    def _say_ready(self) -> None:
        if self._bench.is_free and self._blocked is None:
            self._say(msg.Ready())

    def _report_status(self, session: DeviceSession, now_ms: int) -> None:
        """Send the sensors' readings when they have changed, and with every heartbeat; while free, say so too."""
        changed = False
        if now_ms >= self._sensors_due_ms:
            self._sensors_due_ms = now_ms + SENSORS_EVERY_MS
            status = self._read_status()
            changed, self._status = status != self._status, status
        heartbeat = session.status_is_due(now_ms)
        if changed or heartbeat:
            session.send_status(self._status, now_ms)
        if heartbeat:
            self._say_ready()


def _verdict_words(blocked: str | None) -> str:
    if blocked is None:
        return "may work"
    return f"not working now: {blocked.replace('_', ' ')} (the site's Devices page says more)"
