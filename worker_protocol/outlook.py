"""What an owner may expect of a night before there has been one: today's rates over the hours of the windows.

The range is between a device that keeps its speed all night and one that heat slows to half, as phones are. A night
without jobs earns nothing; no figure here promises any.
"""

from collections.abc import Collection
from dataclasses import dataclass

from accounts.domain.device_classes import DEVICE_CLASSES, SPEED_FACTOR_BOUNDS
from accounts.domain.nights import usual_week
from accounts.domain.windows import Window
from billing.domain.rates import Tariff
from common.money import BASIS_POINTS, US_PER_SECOND, fee_microusd, meter_cap_us, price_microusd

HOUR_US = 3_600 * US_PER_SECOND
# What a phone was measured to keep of its speed once it is warm.
THROTTLED_SPEED = 0.5


@dataclass(frozen=True, slots=True)
class ClassOutlook:
    """A class of devices: its reference speed, and what its owner gets."""

    key: str
    label: str
    flops_per_second: float
    microusd_per_gpu_hour: int
    night_low_microusd: int
    night_high_microusd: int


@dataclass(frozen=True, slots=True)
class Outlook:
    hours_a_night: float
    nights_a_week: int
    fee_percent: float
    speed_bounds: tuple[float, float]
    classes: tuple[ClassOutlook, ...]


def night_outlook(*, windows: Collection[Window], tariff: Tariff) -> Outlook:
    """Rates and nights as the windows allow, by class of device."""
    week = usual_week(windows)
    night_us = round(week.hours_a_night * HOUR_US)

    def earned(gpu_us: int, rate: int) -> int:
        amount = price_microusd(gpu_us=gpu_us, rate_microusd_per_gpu_second=rate)
        return amount - fee_microusd(amount_microusd=amount, fee_basis_points=tariff.fee_basis_points)

    # Half the speed does half the work in the night, for each part of which the meter pays at most its cap.
    throttled_us = min(night_us, meter_cap_us(round(night_us * THROTTLED_SPEED)))
    classes = tuple(
        ClassOutlook(
            key=key,
            label=one.label,
            flops_per_second=one.flops_per_second,
            microusd_per_gpu_hour=earned(HOUR_US, tariff.rates[key]),
            night_low_microusd=earned(throttled_us, tariff.rates[key]),
            night_high_microusd=earned(night_us, tariff.rates[key]),
        )
        for key, one in DEVICE_CLASSES.items()
    )
    return Outlook(
        hours_a_night=week.hours_a_night,
        nights_a_week=week.nights,
        fee_percent=tariff.fee_basis_points * 100 / BASIS_POINTS,
        speed_bounds=SPEED_FACTOR_BOUNDS,
        classes=classes,
    )
