"""What the pages show of devices' last hours: charts, the table behind them, and the rules in force."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from django.utils.safestring import SafeString

from accounts.domain.policy import resume_battery_percent, resume_celsius
from accounts.domain.profile import DeviceProfile
from accounts.domain.windows import window_words
from marketplace.nights.reasons import hours_words
from marketplace.nights.record import Hour
from marketplace.nights.selectors import Night
from marketplace.pages.hour_charts import hour_chart, hour_strip, spent_words, uses_drawn


@dataclass(frozen=True, slots=True)
class HourRow:
    hour: Hour
    spent: str


@dataclass(frozen=True, slots=True)
class NightView:
    night: Night
    chart: SafeString
    keys: Sequence[tuple[str, str]]
    worked: str
    hours: Sequence[HourRow]  # newest first


@dataclass(frozen=True, slots=True)
class StripView:
    night: Night
    strip: SafeString
    worked: str


@dataclass(frozen=True, slots=True)
class Rule:
    name: str
    words: str


def night_view(night: Night, *, zone: ZoneInfo) -> NightView:
    rows = [HourRow(hour, spent_words(hour)) for hour in reversed(night.record.hours)]
    return NightView(
        night=night,
        chart=hour_chart(night.record, zone=zone, title=f"The last 24 hours of {night.device.name}"),
        keys=uses_drawn([night.record]),
        worked=hours_words(night.record.worked) if night.record.worked else "\N{EN DASH}",
        hours=rows,
    )


def strip_views(nights: Sequence[Night], *, zone: ZoneInfo) -> list[StripView]:
    return [
        StripView(
            night=night,
            strip=hour_strip(night.record, zone=zone, title=night.device.name),
            worked=hours_words(night.record.worked),
        )
        for night in nights
    ]


def rules_in_force(profile: DeviceProfile, *, now: datetime) -> list[Rule]:
    """What decides whether the device may work, in the numbers that are in force."""
    policy = profile.policy
    window = window_words(profile.windows, profile.time_zone, now)
    floor, resumes = policy.battery_floor_percent, resume_battery_percent(policy)
    return [
        Rule("Window", f"{window[:1].upper()}{window[1:]}"),
        Rule("Charger", "Only while charging" if policy.charging_only else "Charging or not"),
        Rule(
            "Battery",
            f"Stops below {floor}\u00a0%, goes on at {resumes}\u00a0%" if floor else "At any charge",
        ),
        Rule("Network", "Only on Wi-Fi or cable" if policy.wifi_only else "Any network"),
        Rule(
            "Heat", f"Stops at {policy.too_hot_celsius}\u00a0°C, goes on at {resume_celsius(policy)}\u00a0°C"
        ),
    ]
