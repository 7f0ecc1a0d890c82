"""What an owner does with a device. Whatever decides if it may work is told to the scheduler."""

import math
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import Q

from accounts.errors import InvalidPolicy
from accounts.models import Device, IdleWindow, User
from accounts.selectors import device_of, devices_of
from accounts.services.checks import checked_name
from accounts.services.news import publish_device_news

MAX_BATTERY_FLOOR_PERCENT = 95
TOO_HOT_CELSIUS_BOUNDS = (30, 60)
# `last_seen_at` is for people; every heartbeat would be a write for nobody.
SEEN_NOTED_EVERY = timedelta(minutes=1)


def device_rename(*, owner: User, device_id: UUID, name: str) -> Device:
    device = device_of(owner, device_id)
    device.name = checked_name(name)
    device.save(update_fields=["name"])
    return device


def device_pause(*, owner: User, device_id: UUID) -> Device:
    """The device gets no work, and stops the work it has, until it is resumed."""
    return _set_state(owner, device_id, Device.State.ACTIVE, Device.State.PAUSED)


def device_resume(*, owner: User, device_id: UUID) -> Device:
    return _set_state(owner, device_id, Device.State.PAUSED, Device.State.ACTIVE)


def devices_pause_all(*, owner: User) -> int:
    """Pause every device of the owner that is not paused yet; returns how many that were."""
    return _set_state_of_all(owner, Device.State.ACTIVE, Device.State.PAUSED)


def devices_resume_all(*, owner: User) -> int:
    return _set_state_of_all(owner, Device.State.PAUSED, Device.State.ACTIVE)


@transaction.atomic
def device_remove(*, owner: User, device_id: UUID) -> None:
    """The device leaves for good and its socket is closed; its key cannot be paired again."""
    device = device_of(owner, device_id)
    present = Device.objects.filter(id=device.id).exclude(state=Device.State.REMOVED)
    if present.update(state=Device.State.REMOVED):
        IdleWindow.objects.filter(device=device).delete()
        publish_device_news("removed", [device.id])


@transaction.atomic
def device_set_policy(
    *,
    owner: User,
    device_id: UUID,
    battery_floor_percent: int,
    charging_only: bool,
    wifi_only: bool,
    too_hot_celsius: int,
) -> Device:
    """Replace the policy. Raises InvalidPolicy if a threshold leaves no room for its margin."""
    device = device_of(owner, device_id)
    if not 0 <= battery_floor_percent <= MAX_BATTERY_FLOOR_PERCENT:
        raise InvalidPolicy(
            f"Set the battery floor to 0 to {MAX_BATTERY_FLOOR_PERCENT} %.", field="battery_floor_percent"
        )
    low, high = TOO_HOT_CELSIUS_BOUNDS
    if not low <= too_hot_celsius <= high:
        raise InvalidPolicy(f"Set the too-hot limit to {low} to {high} °C.", field="too_hot_celsius")
    device.battery_floor_percent = battery_floor_percent
    device.charging_only = charging_only
    device.wifi_only = wifi_only
    device.too_hot_celsius = too_hot_celsius
    device.save(update_fields=["battery_floor_percent", "charging_only", "wifi_only", "too_hot_celsius"])
    publish_device_news("changed", [device.id])
    return device


def device_seen(*, device_id: UUID, now: datetime, speed_factor: float | None = None) -> None:
    """Note that a device is in touch, and its speed where it has measured it anew."""
    devices = Device.objects.filter(id=device_id)
    if speed_factor is not None and math.isfinite(speed_factor) and speed_factor > 0:
        devices.exclude(speed_factor=speed_factor).update(speed_factor=speed_factor)
    stale = Q(last_seen_at=None) | Q(last_seen_at__lte=now - SEEN_NOTED_EVERY)
    devices.filter(stale).update(last_seen_at=now)


@transaction.atomic
def _set_state(owner: User, device_id: UUID, old: Device.State, new: Device.State) -> Device:
    device = device_of(owner, device_id)
    if Device.objects.filter(id=device.id, state=old).update(state=new):
        device.state = new
        publish_device_news("changed", [device.id])
    return device


@transaction.atomic
def _set_state_of_all(owner: User, old: Device.State, new: Device.State) -> int:
    """Each is claimed by itself, so that one that changes meanwhile is neither missed nor counted twice."""
    changed = [
        device_id
        for device_id in devices_of(owner).filter(state=old).values_list("id", flat=True)
        if Device.objects.filter(id=device_id, state=old).update(state=new)
    ]
    publish_device_news("changed", changed)
    return len(changed)
