"""Reads of owners' devices over the last hours: the record, and the reason where one earned nothing."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID
from zoneinfo import ZoneInfo

from accounts.models import Device, User
from accounts.selectors import device_of, device_profiles, devices_of
from marketplace.nights.reasons import Explanation, Facts, explain
from marketplace.nights.record import HOURS, Record, hour_edges, record_of
from scheduler.history import device_histories
from worker_protocol.presences import LIFETIME_S

# A device whose server was killed is believed to have been there for so long after it was last heard of.
HEARD_FOR = timedelta(seconds=LIFETIME_S)


@dataclass(frozen=True, slots=True)
class Night:
    """A device's last hours; `explanation` is why it earned nothing in them, None if it did."""

    device: Device
    record: Record
    explanation: Explanation | None


def device_night(*, owner: User, device_id: UUID, now: datetime, hours: int = HOURS) -> Night:
    """Of one of the owner's devices; raises DeviceNotFound for anyone else's."""
    return _nights(owner, [device_of(owner, device_id)], now, hours)[0]


def owner_nights(*, owner: User, now: datetime) -> list[Night]:
    """Of all the owner's devices, by name."""
    return _nights(owner, list(devices_of(owner)), now, HOURS)


def _nights(owner: User, devices: Sequence[Device], now: datetime, hours: int) -> list[Night]:
    edges = hour_edges(now, ZoneInfo(owner.time_zone), hours=hours)
    profiles = device_profiles(device.id for device in devices)
    histories = device_histories(device_ids=list(profiles), since=edges[0], until=now)
    nights = []
    for device in devices:
        profile = profiles[device.id]
        record = record_of(
            histories[device.id],
            edges=edges,
            windows=profile.windows,
            zone=profile.time_zone,
            heard_until=device.last_seen_at and device.last_seen_at + HEARD_FOR,
        )
        facts = Facts(record, profile, device.last_seen_at, now)
        nights.append(Night(device, record, explain(facts)))
    return nights
