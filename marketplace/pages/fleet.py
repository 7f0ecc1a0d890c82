"""What the owner's page shows: every device in words, the windows in force, and what came in."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID
from zoneinfo import ZoneInfo

from accounts.domain.profile import DeviceProfile
from accounts.models import Device, User
from accounts.selectors import device_of, device_profiles, devices_of
from billing.selectors import earnings_balance
from marketplace.pages.device_words import Contact, DeviceWords, device_words
from marketplace.pages.window_rows import window_lines
from scheduler.activity import IDLE, Activity, owner_activity
from worker_protocol.presences import presences

WEEK = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class DeviceView:
    device: Device
    words: DeviceWords
    activity: Activity
    windows: tuple[str, ...]  # in force, a line for each group of days
    profile: DeviceProfile


@dataclass(frozen=True, slots=True)
class FleetView:
    devices: tuple[DeviceView, ...]
    today_microusd: int
    week_microusd: int
    earnings_microusd: int  # the ledger's balance

    @property
    def can_pause(self) -> bool:
        return any(view.device.state == Device.State.ACTIVE for view in self.devices)

    @property
    def can_resume(self) -> bool:
        return any(view.device.state == Device.State.PAUSED for view in self.devices)


def fleet_view(*, owner: User, now: datetime) -> FleetView:
    activity = _activity(owner, now)
    return FleetView(
        devices=_device_views(list(devices_of(owner)), activity, now),
        today_microusd=sum(one.today_microusd for one in activity.values()),
        week_microusd=sum(one.week_microusd for one in activity.values()),
        earnings_microusd=earnings_balance(owner),
    )


def device_view(*, owner: User, device_id: UUID, now: datetime) -> DeviceView:
    """One of the owner's devices; raises DeviceNotFound for anyone else's."""
    device = device_of(owner, device_id)
    return _device_views([device], _activity(owner, now), now)[0]


def _device_views(
    devices: list[Device], activity: dict[UUID, Activity], now: datetime
) -> tuple[DeviceView, ...]:
    profiles = device_profiles(device.id for device in devices)
    blocked = presences(device.id for device in devices)
    views = []
    for device in devices:
        profile, does = profiles[device.id], activity.get(device.id, IDLE)
        contact = Contact(device.id in blocked, blocked.get(device.id), device.last_seen_at)
        words = device_words(profile=profile, contact=contact, activity=does, now=now)
        views.append(DeviceView(device, words, does, window_lines(profile.windows), profile))
    return tuple(views)


def _activity(owner: User, now: datetime) -> dict[UUID, Activity]:
    midnight = now.astimezone(ZoneInfo(owner.time_zone)).replace(hour=0, minute=0, second=0, microsecond=0)
    return owner_activity(owner_id=owner.pk, today_since=midnight, week_since=now - WEEK)
