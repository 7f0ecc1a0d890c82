"""The fleet manager: one consumer for each device's socket, thin over `ServerSession` and `Presence`.

Frames and the clock go into the session; what comes out becomes events for the dispatcher. The dispatcher's
instructions become messages for the device.

Towards the dispatcher nothing is lost in silence. A message that its channel is too full to take is answered with
`busy`, and the device sends it again; news of our own (connected, blocked) is tried again at the next tick.
"""

import asyncio
import logging
import secrets
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from typing import Any
from uuid import UUID

from channels.db import database_sync_to_async
from channels.exceptions import ChannelFull
from channels.generic.websocket import AsyncWebsocketConsumer

from accounts.domain.windows import last_noon
from accounts.selectors import device_profile
from billing.selectors import tariff_at
from blobs.errors import BlobNotFound
from common.clock import utc_now
from scheduler import fleet
from scheduler.activity import device_earned_microusd
from scheduler.domain import events as ev
from scheduler.domain import instructions as ins
from scheduler.selectors import lease_for_device
from worker_protocol.outbound import Outbound
from worker_protocol.presence import Presence
from worker_protocol.presences import presence_forget, presence_note
from worker_protocol.selectors import device_credentials
from worker_protocol.services import device_seen
from worker_protocol.terms import terms_change_at, terms_message
from worker_protocol.translation import ack_message, event_of, lease_message, readings_of
from worker_protocol.wire import errors
from worker_protocol.wire import messages as msg
from worker_protocol.wire.session import ServerSession

log = logging.getLogger(__name__)

TICK_S = 5.0
# How long a closing socket may take to read its last frames.
LAST_FRAMES_S = 2.0
# Waits before each further try to tell a full dispatcher that a device has gone.
GOODBYE_WAITS_S = (0.0, 0.1, 0.3, 1.0, 3.0)


def steady_ms() -> int:
    return time.monotonic_ns() // 1_000_000


class DeviceConsumer(AsyncWebsocketConsumer):
    """One device's socket. Nothing here is authorised by cookies, so its origin does not matter."""

    def __init__(self, *, clock_ms: Callable[[], int] = steady_ms, tick_s: float = TICK_S) -> None:
        super().__init__()
        self._clock_ms = clock_ms
        self._tick_s = tick_s
        self._session = ServerSession(nonce=secrets.token_hex(32), now_ms=clock_ms())
        self._presence: Presence | None = None  # there once the device is welcome
        self._one_at_a_time = asyncio.Lock()
        self._outbound: Outbound | None = None
        self._ticker: asyncio.Task[None] | None = None

    # ---- the socket

    async def connect(self) -> None:
        if msg.PROTOCOL not in self.scope["subprotocols"]:
            await self.close()  # not accepted yet, so the handshake itself fails
            return
        await self.accept(msg.PROTOCOL)
        self._outbound = Outbound(self.send)
        self._ticker = asyncio.create_task(self._tick())

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        frame = text_data if text_data is not None else (bytes_data or b"")
        async with self._turn():
            for message in self._session.receive(frame, self._clock_ms()):
                await self._handle(message)

    async def disconnect(self, code: int) -> None:
        async with self._one_at_a_time:
            self._session.close(code)
            if self._ticker is not None:
                self._ticker.cancel()
            if self._outbound is not None:
                self._outbound.stop()
        for group in (fleet.FLEET_GROUP, fleet.SERVER_GROUP):
            await self.channel_layer.group_discard(group, self.channel_name)
        if self._presence is not None:
            await presence_forget(device_id=self._presence.profile.id, session_id=self.channel_name)
            await self._say_goodbye(self._presence.profile.id)

    # ---- the device

    async def _handle(self, message: msg.DeviceMessage) -> None:
        if isinstance(message, msg.Auth):
            await self._authenticate(message)
        elif self._presence is not None:
            if isinstance(message, msg.Status):
                await self._take_status(message, self._presence)
            else:
                await self._pass_on(message, self._presence)

    async def _authenticate(self, auth: msg.Auth) -> None:
        """Check the signature before saying anything about the device; welcome it once the dispatcher knows."""
        hello = self._session.hello
        if hello is None:
            raise errors.AuthFailed
        device_id = UUID(hello.device_id)
        known = await database_sync_to_async(device_credentials)(device_id)
        if known is None or not self._session.is_signed_by(known.public_key, auth):
            raise errors.AuthFailed
        profile = await database_sync_to_async(device_profile)(device_id)
        if profile is None or profile.state == "removed":
            raise errors.DeviceRemoved
        presence = Presence(
            profile=profile,
            session_id=self.channel_name,
            memory_bytes=hello.memory_bytes,
            max_buffer_bytes=hello.max_buffer_bytes,
            cached=tuple(hello.cached),
        )
        presence.reconsider(utc_now())
        await self._join_groups()
        if not await self._tell_news(presence, hello.leases):
            raise errors.Busy
        self._presence = presence
        self._session.welcome(server_time_ms=int(utc_now().timestamp() * 1000), blocked=presence.blocked)
        await self._tell_terms(presence)
        await self._note_seen(presence)
        log.info("device %s connected (%r)", device_id, hello.agent)  # its own words, so quoted

    async def _take_status(self, status: msg.Status, presence: Presence) -> None:
        presence.readings = readings_of(status)
        presence.reconsider(utc_now())
        self._session.send(msg.Blocked(reason=presence.blocked))
        await self._tell_news(presence, self._session.leases)
        await self._note_seen(presence)

    async def _pass_on(self, message: msg.DeviceMessage, presence: Presence) -> None:
        event = event_of(message, device_id=presence.profile.id, session_id=self.channel_name)
        if event is not None and not await self._tell(event):
            raise errors.Busy(lease_id=getattr(message, "lease_id", None))

    async def _tell_terms(self, presence: Presence) -> None:
        """Send the device its terms if they may have changed and have."""
        now = utc_now()
        if not presence.terms_are_due(now):
            return
        profile = presence.profile
        earned_microusd = await database_sync_to_async(device_earned_microusd)(
            device_id=profile.id, since=last_noon(profile.time_zone, now)
        )
        tariff = await database_sync_to_async(tariff_at)(now)
        terms = terms_message(profile=profile, earned_microusd=earned_microusd, tariff=tariff, now=now)
        if presence.take_terms(terms, due_at=terms_change_at(profile=profile, now=now)):
            self._session.send(terms)

    async def _join_groups(self) -> None:
        for group in (fleet.FLEET_GROUP, fleet.SERVER_GROUP):
            await self.channel_layer.group_add(group, self.channel_name)

    async def _note_seen(self, presence: Presence) -> None:
        now = utc_now()
        if presence.seen(now):
            await self._join_groups()  # which Redis forgets after a day, and when it is started anew
            await database_sync_to_async(device_seen)(device_id=presence.profile.id, now=now)
            await self._note_presence(presence)

    async def _note_presence(self, presence: Presence) -> None:
        """For the owner's page; the dispatcher has its own news."""
        await presence_note(
            device_id=presence.profile.id, session_id=self.channel_name, blocked=presence.blocked
        )

    # ---- messages to the fleet, and from the dispatcher

    async def fleet_drain(self, message: dict[str, Any]) -> None:
        """This server stops soon: `{"type": "fleet.drain", "reconnect_ms"}` to the server's group."""
        async with self._turn():
            if self._presence is not None and self._session.close_code is None:
                self._session.send(msg.Drain(reconnect_ms=message["reconnect_ms"]))

    async def fleet_announce(self, _message: dict[str, Any]) -> None:
        """A dispatcher has started and knows no device yet."""
        async with self._turn():
            if self._presence is not None:
                self._presence.announce()
                await self._tell_news(self._presence, self._session.leases)

    async def device_refresh(self, _message: dict[str, Any]) -> None:
        """The owner has changed something about this device."""
        async with self._turn():
            if self._presence is not None:
                profile = await database_sync_to_async(device_profile)(self._presence.profile.id)
                if profile is None or profile.state == "removed":
                    raise errors.DeviceRemoved
                self._presence.profile = profile
                self._presence.ask_terms()
                await self._reconsider(self._presence)

    async def device_instruction(self, message: dict[str, Any]) -> None:
        async with self._turn():
            if self._presence is not None and self._session.close_code is None:
                await self._obey(fleet.instruction_from_message(message), self._presence)

    async def _obey(self, instruction: ins.DeviceInstruction, presence: Presence) -> None:
        match instruction:
            case ins.SendLease(lease_id=lease_id):
                await self._send_lease(lease_id, presence)
            case ins.SendRevoke(lease_id=lease_id, reason=reason):
                self._session.send(msg.Revoke(lease_id=str(lease_id), reason=reason))
            case ins.SendAck():
                self._session.send(ack_message(instruction))
                presence.ask_terms()
                await self._tell_terms(presence)
            case ins.CloseSession(reason="removed"):
                raise errors.DeviceRemoved
            case ins.CloseSession():
                raise errors.Superseded

    async def _send_lease(self, lease_id: UUID, presence: Presence) -> None:
        """Send the lease as its row is now, for an instruction may be late or a repeat."""
        try:
            work = await database_sync_to_async(lease_for_device)(lease_id)
        except BlobNotFound:  # the site's fault, so the device keeps its socket and the lease runs out
            log.error("lease %s: one of its blobs is gone", lease_id)
            return
        if work is not None and work.live and work.device_id == presence.profile.id:
            self._session.send(lease_message(work, now=utc_now()))

    # ---- telling the dispatcher

    async def _reconsider(self, presence: Presence) -> None:
        """Decide anew whether the device may work, and tell it and the dispatcher of a change."""
        if presence.reconsider(utc_now()):
            self._session.send(msg.Blocked(reason=presence.blocked))
        await self._tell_terms(presence)
        await self._tell_news(presence, self._session.leases)

    async def _tell_news(self, presence: Presence, leases: Iterable[str]) -> bool:
        """Tell what is new about the device; False when that must wait for the next tick."""
        news = presence.news(leases)
        if news is not None and not await self._tell(news):
            return False
        if news is not None:
            presence.told(news)
            await self._note_presence(presence)
        return True

    async def _tell(self, event: ev.DeviceEvent) -> bool:
        """Whether the dispatcher's channel had room for the event."""
        try:
            await self.channel_layer.send(fleet.DISPATCHER, fleet.event_to_message(event))
        except ChannelFull:
            return False
        return True

    async def _say_goodbye(self, device_id: UUID) -> None:
        event = ev.DeviceDisconnected(device_id=device_id, session_id=self.channel_name)
        for wait_s in GOODBYE_WAITS_S:
            await asyncio.sleep(wait_s)
            if await self._tell(event):
                return
        log.warning("device %s: the dispatcher was too busy to hear that it has gone", device_id)

    # ---- turns and time

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        """One thing at a time. What fails ends this socket alone; frames go out at the end."""
        async with self._one_at_a_time:
            try:
                yield
            except errors.ProtocolError as error:
                self._session.fail(error)
            except Exception:
                log.exception("device %s: its socket failed", self._presence and self._presence.profile.id)
                self._session.fail(errors.Internal())
            await self._flush()

    async def _flush(self) -> None:
        if self._outbound is None or self._outbound.stopped:
            return
        for frame in self._session.frames_to_send():
            if not self._outbound.put(frame):
                self._session.fail(errors.SlowReader())
                break
        if self._session.close_code is not None:
            await self._outbound.finish(timeout_s=LAST_FRAMES_S)
            with suppress(TimeoutError):
                await asyncio.wait_for(self.close(self._session.close_code), LAST_FRAMES_S)

    async def _tick(self) -> None:
        """Windows open and close, and devices fall silent, with nothing but time passing."""
        while self._session.close_code is None:
            await asyncio.sleep(self._tick_s)
            async with self._turn():
                self._session.tick(self._clock_ms())
                if self._presence is not None and self._session.close_code is None:
                    await self._reconsider(self._presence)
