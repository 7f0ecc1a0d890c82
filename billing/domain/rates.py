"""What a metered GPU-second costs a buyer, by class of device, and what follows from it for an owner. Pure.

Prices are dated rows (`billing.models.rates`); a `Tariff` is what they say at one moment. A job's quote keeps the
tariff that it was made with, so a change moves no price that was already agreed.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from accounts.domain.device_classes import DEVICE_CLASSES
from billing.errors import EstimateInvalid, RateInvalid
from common.money import BASIS_POINTS, US_PER_SECOND, fee_microusd, price_microusd

# What a new site begins with. Rates grow more slowly than speed does: a quick device earns more by the second, and is
# still cheaper for the same work.
OPENING_RATES: dict[str, int] = {  # micro-USD per GPU-second
    "laptop-cpu": 100,
    "laptop-gpu": 600,
    "phone-entry": 150,
    "phone-high": 400,
}
# Ten dollars a second: whoever means more has mistaken the unit.
MAX_RATE_MICROUSD = 10_000_000
MAX_ESTIMATE_HOURS = 24
_US_PER_HOUR = 3_600 * US_PER_SECOND


@dataclass(frozen=True, slots=True)
class Tariff:
    """The prices in force at a moment: micro-USD per GPU-second by device class, and the platform's part of them."""

    rates: Mapping[str, int]
    fee_basis_points: int


@dataclass(frozen=True, slots=True)
class DeviceEstimate:
    """What some hours of a device would bring its owner, the fee taken; `basis` says what the range rests on."""

    device_class: str
    hours: float
    rate_microusd_per_gpu_second: int
    fee_basis_points: int
    paid_share: float | None
    low_microusd: int
    high_microusd: int
    basis: str


def newest_by_class(rows: Iterable[tuple[str, datetime, int]]) -> dict[str, int]:
    """The rate of each class that began last, of (class, valid from, rate) in any order."""
    newest: dict[str, tuple[datetime, int]] = {}
    for device_class, valid_from, rate in rows:
        if device_class not in newest or newest[device_class][0] < valid_from:
            newest[device_class] = (valid_from, rate)
    return {device_class: rate for device_class, (_, rate) in newest.items()}


def rate_check(*, device_class: str, microusd_per_gpu_second: int) -> None:
    """Raise RateInvalid unless this can be a rate."""
    check_class(device_class, RateInvalid)
    if not 1 <= microusd_per_gpu_second <= MAX_RATE_MICROUSD:
        raise RateInvalid(
            "microusd_per_gpu_second: must be a whole number of micro-USD from 1 to "
            f"{MAX_RATE_MICROUSD:,}; 1,000,000 is one USD for each GPU-second.",
            field="microusd_per_gpu_second",
        )


def fee_check(basis_points: int) -> None:
    """Raise RateInvalid unless this can be the platform's part."""
    if not 0 <= basis_points <= BASIS_POINTS:
        raise RateInvalid(
            f"basis_points: must be a whole number from 0 to {BASIS_POINTS:,}; 2,000 is 20 %.",
            field="basis_points",
        )


def start_check(valid_from: datetime, *, now: datetime) -> None:
    """Raise RateInvalid for a price that would have begun in the past."""
    if valid_from < now:
        raise RateInvalid(
            f"valid_from: {valid_from:%Y-%m-%d %H:%M} UTC is in the past. Give a later time, or none for now.",
            field="valid_from",
        )


def device_estimate(
    tariff: Tariff, *, device_class: str, hours: float, paid_share: float | None
) -> DeviceEstimate:
    """High: its GPU is paid for all of the hours. Low: for as much of them as devices of its class were of late.

    `paid_share` is that share, None where too little is measured to say; then the low end is nothing.
    """
    check_class(device_class, EstimateInvalid)
    if not 0 < hours <= MAX_ESTIMATE_HOURS:
        raise EstimateInvalid(
            f"hours: must be more than 0 and at most {MAX_ESTIMATE_HOURS}. Give the hours of one night.",
            field="hours",
        )
    rate = tariff.rates[device_class]

    def earned(share: float) -> int:
        gpu_us = int(hours * share * _US_PER_HOUR)
        price = price_microusd(gpu_us=gpu_us, rate_microusd_per_gpu_second=rate)
        return price - fee_microusd(amount_microusd=price, fee_basis_points=tariff.fee_basis_points)

    return DeviceEstimate(
        device_class=device_class,
        hours=hours,
        rate_microusd_per_gpu_second=rate,
        fee_basis_points=tariff.fee_basis_points,
        paid_share=paid_share,
        low_microusd=earned(paid_share or 0.0),
        high_microusd=earned(1.0),
        basis=_basis(paid_share),
    )


def _basis(paid_share: float | None) -> str:
    high = "The high end is work for all of the time; only accepted GPU-seconds are paid."
    if paid_share is None:
        return f"{high} How often devices of this class have work is not measured yet, so the low end is nothing."
    return (
        f"{high} The low end is how it was of late: {paid_share:.0%} of the time in which devices of this class "
        "were free to work was paid. Neither is a promise."
    )


def check_class(device_class: str, error: type[RateInvalid] | type[EstimateInvalid]) -> None:
    if device_class not in DEVICE_CLASSES:
        known = ", ".join(sorted(DEVICE_CLASSES))
        raise error(
            f"device_class: '{device_class[:20]}' is unknown. Use one of {known}.", field="device_class"
        )
