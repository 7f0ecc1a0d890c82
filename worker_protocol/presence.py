"""One connected device as the fleet manager sees it: may it work, and what must the dispatcher still learn of it?

Pure: no socket, no database, no clock. The consumer feeds it and carries its news.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from accounts.domain.policy import Readings, decide
from accounts.domain.profile import DeviceProfile
from scheduler.domain import events as ev
from worker_protocol.wire import messages as msg

SEEN_EVERY = timedelta(minutes=1)


@dataclass(slots=True)
class Presence:
    """A device's profile and last readings, the verdict on them, and the news that is still to be told."""

    profile: DeviceProfile
    session_id: str
    memory_bytes: int
    max_buffer_bytes: int
    cached: tuple[str, ...]
    readings: Readings = field(default_factory=Readings)
    blocked: ev.BlockReason | None = None
    _announced: bool = False
    _blocked_told: ev.BlockReason | None = None
    _seen_at: datetime | None = None
    _terms: msg.Terms | None = None
    _terms_due_at: datetime | None = None

    def reconsider(self, now: datetime) -> bool:
        """Decide anew whether the device may work; True if the verdict has changed."""
        verdict = decide(profile=self.profile, readings=self.readings, now=now, blocked_before=self.blocked)
        changed = verdict != self.blocked
        self.blocked = verdict
        return changed

    def announce(self) -> None:
        """The dispatcher has forgotten this device: introduce it again."""
        self._announced = False

    def news(self, leases: Iterable[str]) -> ev.DeviceConnected | ev.DeviceBlocked | None:
        """What the dispatcher must learn next; `leases` are those that the device holds."""
        if not self._announced:
            return self._connected(leases)
        if self._blocked_told != self.blocked:
            return ev.DeviceBlocked(device_id=self.profile.id, blocked=self.blocked)
        return None

    def told(self, news: ev.DeviceConnected | ev.DeviceBlocked) -> None:
        """The dispatcher's channel has taken `news`."""
        self._announced = True
        self._blocked_told = news.blocked

    def terms_are_due(self, now: datetime) -> bool:
        """Whether the device's terms must be looked at again."""
        return self._terms_due_at is None or now >= self._terms_due_at

    def ask_terms(self) -> None:
        """Something other than time may have changed the device's terms."""
        self._terms_due_at = None

    def take_terms(self, terms: msg.Terms, *, due_at: datetime) -> bool:
        """Note the terms as they are until `due_at`; True if the device does not know them yet."""
        changed = terms != self._terms
        self._terms, self._terms_due_at = terms, due_at
        return changed

    def seen(self, now: datetime) -> bool:
        """The device has shown a sign of life; True when it is time to write that down."""
        if self._seen_at is not None and now - self._seen_at < SEEN_EVERY:
            return False
        self._seen_at = now
        return True

    def _connected(self, leases: Iterable[str]) -> ev.DeviceConnected:
        return ev.DeviceConnected(
            device_id=self.profile.id,
            session_id=self.session_id,
            owner_id=self.profile.owner_id,
            device_class=self.profile.device_class,
            speed_factor=self.profile.speed_factor,
            memory_bytes=self.memory_bytes,
            max_buffer_bytes=self.max_buffer_bytes,
            blocked=self.blocked,
            resumed=tuple(UUID(lease_id) for lease_id in leases),
            cached=self.cached,
        )
