"""What the fleet manager writes about a device."""

from datetime import datetime
from uuid import UUID

from accounts.models import Device


def device_seen(*, device_id: UUID, now: datetime) -> None:
    """Note when a device was last heard of; callers do so at most once a minute (see `Presence.seen`)."""
    Device.objects.filter(id=device_id).update(last_seen_at=now)
