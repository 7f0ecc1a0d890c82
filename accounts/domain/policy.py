"""Whether a device may work now: its owner's policy against what its sensors say, and against the clock.

Two rules run through everything here. A reading that is missing is unknown, and unknown never blocks. A threshold
that has stopped a device lets it go on only with some margin, so that a value flickering around it does not start
and stop work.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from accounts.domain.profile import DeviceProfile, Policy
from accounts.domain.windows import is_open, window_words

BlockReason = Literal[
    "paused", "removed", "outside_window", "battery_low", "not_charging", "not_on_wifi", "too_hot"
]
BATTERY_MARGIN_PERCENT = 5
HEAT_MARGIN_CELSIUS = 5


@dataclass(frozen=True, slots=True)
class Readings:
    """What a device's sensors say; None is unknown."""

    battery_percent: float | None = None
    charging: bool | None = None
    network: Literal["wifi", "ethernet", "cellular", "none"] | None = None
    temperature_celsius: float | None = None
    thermal: Literal["nominal", "fair", "serious", "critical"] | None = None


def decide(
    *, profile: DeviceProfile, readings: Readings, now: datetime, blocked_before: str | None
) -> BlockReason | None:
    """Why the device may not work now, or None if it may.

    `blocked_before` is the last answer for this device: the reason that stopped it is asked first, with its margin,
    so it keeps being the answer until it is truly over.
    """
    if profile.state == "removed":
        return "removed"
    if profile.state == "paused":
        return "paused"
    if not is_open(profile.windows, profile.time_zone, now):
        return "outside_window"
    for reason in sorted(_SENSOR_CHECKS, key=lambda reason: reason != blocked_before):
        if _SENSOR_CHECKS[reason](profile.policy, readings, reason == blocked_before):
            return reason
    return None


def resume_battery_percent(policy: Policy) -> int:
    """The charge at which a device that was stopped by its battery floor goes on."""
    return min(100, policy.battery_floor_percent + BATTERY_MARGIN_PERCENT)


def resume_celsius(policy: Policy) -> int:
    """The temperature at which a device that was stopped as too hot goes on."""
    return policy.too_hot_celsius - HEAT_MARGIN_CELSIUS


def block_words(reason: str, *, profile: DeviceProfile, now: datetime) -> str:
    """For people: why the device does not work and when it will, in the numbers that are in force."""
    policy = profile.policy
    words = {
        "paused": "paused by its owner",
        "removed": "removed",
        "outside_window": f"outside its idle windows: {window_words(profile.windows, profile.time_zone, now)}",
        "battery_low": (
            f"battery below {policy.battery_floor_percent} %: resumes at {resume_battery_percent(policy)} %"
        ),
        "not_charging": "not charging: resumes when it is plugged in",
        "not_on_wifi": "not on Wi-Fi: resumes when it is",
        "too_hot": f"too hot: resumes at {resume_celsius(policy)} °C",
    }
    return words.get(reason, reason.replace("_", " "))


def _too_hot(policy: Policy, readings: Readings, stopped: bool) -> bool:
    limit_celsius = resume_celsius(policy) if stopped else policy.too_hot_celsius
    if readings.temperature_celsius is not None and _over(
        readings.temperature_celsius, limit_celsius, stopped
    ):
        return True
    # The system's own word, where it gives one. "fair" is what honest work does to a phone, so it stops nothing.
    return readings.thermal in ({"fair", "serious", "critical"} if stopped else {"serious", "critical"})


def _over(value: float, limit: float, stopped: bool) -> bool:
    """At the limit is too hot; at the lower limit for going on is cool enough."""
    return value > limit if stopped else value >= limit


def _battery_low(policy: Policy, readings: Readings, stopped: bool) -> bool:
    percent = readings.battery_percent
    if percent is None or (percent == 0 and readings.charging):
        return False  # 0 % on the charger is what a device without a battery sensor reports
    return percent < (resume_battery_percent(policy) if stopped else policy.battery_floor_percent)


def _not_charging(policy: Policy, readings: Readings, stopped: bool) -> bool:
    return policy.charging_only and readings.charging is False


def _not_on_wifi(policy: Policy, readings: Readings, stopped: bool) -> bool:
    # "none" spends nobody's data: what is under way goes on, and is told when there is a network again.
    return policy.wifi_only and readings.network == "cellular"


# Each takes the policy, the readings and whether it is what has stopped the device. Safety first.
_SENSOR_CHECKS: dict[BlockReason, Callable[[Policy, Readings, bool], bool]] = {
    "too_hot": _too_hot,
    "battery_low": _battery_low,
    "not_charging": _not_charging,
    "not_on_wifi": _not_on_wifi,
}
