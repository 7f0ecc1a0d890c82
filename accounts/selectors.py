"""Reads of devices, each one checked against its owner where it is for an owner."""

from collections import defaultdict
from collections.abc import Iterable
from typing import cast
from uuid import UUID
from zoneinfo import ZoneInfo

from django.db.models import Q, QuerySet

from accounts.domain.profile import DeviceProfile, DeviceState, Policy
from accounts.domain.windows import Window
from accounts.errors import DeviceNotFound
from accounts.models import ApiToken, Device, IdleWindow, User

__all__ = [
    "DeviceProfile",
    "api_tokens_of",
    "common_windows_of",
    "device_by_key",
    "device_of",
    "device_profile",
    "device_profiles",
    "devices_of",
    "windows_of_device",
]


def device_profile(device_id: UUID) -> DeviceProfile | None:
    """The device as the fleet manager knows it (a removed one too); None if there never was one."""
    return device_profiles([device_id]).get(device_id)


def device_profiles(ids: Iterable[UUID]) -> dict[UUID, DeviceProfile]:
    """Profiles by device id, in two queries however many; ids without a device are left out."""
    devices = list(Device.objects.select_related("owner").filter(id__in=list(ids)))
    windows = _windows_by_device(devices)
    return {device.id: _profile(device, windows[device.id]) for device in devices}


def devices_of(owner: User) -> QuerySet[Device]:
    """The owner's devices, without removed ones."""
    return Device.objects.filter(owner=owner).exclude(state=Device.State.REMOVED)


def device_of(owner: User, device_id: UUID) -> Device:
    device = devices_of(owner).filter(id=device_id).first()
    if device is None:
        raise DeviceNotFound("You have no such device.")
    return device


def device_by_key(public_key: bytes) -> Device | None:
    return Device.objects.filter(public_key=public_key).first()


def common_windows_of(owner: User) -> list[Window]:
    """The windows of all the owner's devices that have none of their own."""
    return [_window(row) for row in IdleWindow.objects.filter(owner=owner, device=None)]


def windows_of_device(device: Device) -> list[Window]:
    """The device's own windows; empty if the common ones apply to it."""
    return [_window(row) for row in IdleWindow.objects.filter(device=device)]


def api_tokens_of(user: User) -> QuerySet[ApiToken]:
    return ApiToken.objects.filter(user=user, revoked_at=None)


def _windows_by_device(devices: list[Device]) -> dict[UUID, tuple[Window, ...]]:
    """Those that apply: a device's own or, if it has none, its owner's common ones."""
    own: dict[UUID, list[Window]] = defaultdict(list)
    common: dict[int, list[Window]] = defaultdict(list)
    owner_ids = {device.owner_id for device in devices}
    rows = IdleWindow.objects.filter(Q(device__in=devices) | Q(device=None, owner__in=owner_ids))
    for row in rows:
        if row.device_id is None:
            common[row.owner_id].append(_window(row))
        else:
            own[row.device_id].append(_window(row))
    return {device.id: tuple(own[device.id] or common[device.owner_id]) for device in devices}


def _window(row: IdleWindow) -> Window:
    return Window(row.weekday, row.starts, row.ends)


def _profile(device: Device, windows: tuple[Window, ...]) -> DeviceProfile:
    policy = Policy(
        battery_floor_percent=device.battery_floor_percent,
        charging_only=device.charging_only,
        wifi_only=device.wifi_only,
        too_hot_celsius=device.too_hot_celsius,
    )
    return DeviceProfile(
        id=device.id,
        owner_id=device.owner_id,
        state=cast(DeviceState, device.state),  # as the column's choices hold it
        device_class=device.device_class,
        speed_factor=device.speed_factor,
        policy=policy,
        windows=windows,
        time_zone=ZoneInfo(device.owner.time_zone),
    )
