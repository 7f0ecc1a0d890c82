"""How much of the time in which devices could work they were paid for: what owners' estimates rest on."""

from datetime import datetime, timedelta

from django.db.models import Q, QuerySet, Sum
from django.db.models.functions import Coalesce

from accounts.models import Device
from scheduler.models import Lease, Spell

# Less than a night of one device says nothing.
MEASURED_MIN = timedelta(hours=8)


def paid_share(device_class: str, *, since: datetime, now: datetime) -> float | None:
    """Accepted GPU time of a class over the time its devices were connected and free to work; None if too little."""
    free = _free_time(Device.objects.filter(device_class=device_class), since=since, now=now)
    if free < MEASURED_MIN:
        return None
    accepted = Lease.objects.filter(
        device_class=device_class, state=Lease.State.ACCEPTED, ended_at__gte=since, ended_at__lte=now
    )
    paid_us = accepted.aggregate(total=Coalesce(Sum("metered_gpu_us"), 0))["total"]
    return min(1.0, timedelta(microseconds=paid_us) / free)


def _free_time(devices: QuerySet[Device], *, since: datetime, now: datetime) -> timedelta:
    spells = Spell.objects.filter(
        Q(ended_at__gt=since) | Q(ended_at=None), blocked=None, device_id__in=devices.values("id")
    )
    rows = spells.values_list("began_at", "ended_at").iterator()
    return sum((min(ended or now, now) - max(began, since) for began, ended in rows), timedelta())
