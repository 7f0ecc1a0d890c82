"""What a night of a device would earn, from the prices in force and what devices of its class earned of late."""

from datetime import datetime, timedelta

from django.core.cache import cache

from billing.domain.rates import DeviceEstimate, check_class, device_estimate
from billing.errors import EstimateInvalid
from billing.selectors import tariff_at
from scheduler.services import SPELLS_KEPT
from scheduler.workload import paid_share

_MEASURED_ANEW = timedelta(minutes=10)


def owner_estimate(*, device_class: str, hours: float, now: datetime) -> DeviceEstimate:
    """Raises EstimateInvalid for an unknown class, or hours that no night has."""
    check_class(device_class, EstimateInvalid)
    share = _paid_share(device_class, now)
    return device_estimate(tariff_at(now), device_class=device_class, hours=hours, paid_share=share)


def _paid_share(device_class: str, now: datetime) -> float | None:
    """Measured anew every few minutes, however often strangers ask."""
    key = f"paid-share:{device_class}"
    kept: tuple[float | None] | None = cache.get(key)
    if kept is None:
        kept = (paid_share(device_class, since=now - SPELLS_KEPT, now=now),)
        cache.set(key, kept, timeout=_MEASURED_ANEW.total_seconds())
    return kept[0]
