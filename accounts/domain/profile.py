"""All that decides whether a device may work: a snapshot of it without a database behind."""

from dataclasses import dataclass
from typing import Literal
from uuid import UUID
from zoneinfo import ZoneInfo

from accounts.domain.windows import Window

DeviceState = Literal["active", "paused", "removed"]


@dataclass(frozen=True, slots=True)
class Policy:
    """What an owner allows a device to do. The two 'only' rules and the thresholds stop work at once."""

    battery_floor_percent: int = 40
    charging_only: bool = True
    wifi_only: bool = True
    too_hot_celsius: int = 40


@dataclass(frozen=True, slots=True)
class DeviceProfile:
    """A device as the fleet manager knows it. `windows` are those that apply to it, in `time_zone` (its owner's)."""

    id: UUID
    owner_id: int
    state: DeviceState
    device_class: str
    speed_factor: float
    policy: Policy
    windows: tuple[Window, ...]
    time_zone: ZoneInfo
