"""Reads of what an owner's devices do and have done: three queries, however many devices there are."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Count, F, Q, Sum
from django.db.models.functions import Coalesce

from common.money import BASIS_POINTS
from scheduler.domain.transitions import LIVE
from scheduler.models import Lease, Standing


@dataclass(frozen=True, slots=True)
class Work:
    """The lease that a device holds now."""

    step: int
    local_steps: int
    granted_at: datetime


@dataclass(frozen=True, slots=True)
class Activity:
    """One device. Earnings are what accepted results bring the owner, the platform's fee taken."""

    work: Work | None = None
    today_microusd: int = 0
    week_microusd: int = 0
    week_results: int = 0
    week_gpu_us: int = 0
    failures_in_a_row: int = 0
    benched_until: datetime | None = None


IDLE = Activity()


def owner_activity(*, owner_id: int, today_since: datetime, week_since: datetime) -> dict[UUID, Activity]:
    """By device, removed ones among them; devices that have had no lease since `week_since` are left out.

    A result counts from when it is accepted; the ledger follows when its round closes.
    """
    leases = Lease.objects.filter(owner_id=owner_id)
    ended = _ended_since(leases.filter(ended_at__gte=week_since), today_since)
    standings = Standing.objects.in_bulk([row["device_id"] for row in ended])
    activity = {row["device_id"]: _activity(row, standings.get(row["device_id"])) for row in ended}
    live = leases.filter(state__in=list(LIVE)).order_by("granted_at").select_related("shard__round__run")
    for lease in live:
        work = Work(lease.step, lease.shard.round.run.local_steps, lease.granted_at)
        activity[lease.device_id] = replace(activity.get(lease.device_id, IDLE), work=work)
    return activity


def device_earned_microusd(*, device_id: UUID, since: datetime) -> int:
    """What results of a device accepted since then bring its owner, the platform's fee taken."""
    accepted = Lease.objects.filter(device_id=device_id, ended_at__gte=since, state=Lease.State.ACCEPTED)
    total = accepted.aggregate(total=Coalesce(Sum(_earned()), 0))["total"]
    return int(total)


def _earned() -> Any:
    """Rounded for each charge, as the ledger does it."""
    return F("charge_microusd") - F("charge_microusd") * F("fee_basis_points") / BASIS_POINTS


def _ended_since(leases: Any, today_since: datetime) -> list[dict[str, Any]]:
    accepted = Q(state=Lease.State.ACCEPTED)
    earned = _earned()
    sums = (
        leases.order_by()
        .values("device_id")
        .annotate(
            today_microusd=Coalesce(Sum(earned, filter=accepted & Q(ended_at__gte=today_since)), 0),
            week_microusd=Coalesce(Sum(earned, filter=accepted), 0),
            week_results=Count("id", filter=accepted),
            week_gpu_us=Coalesce(Sum("metered_gpu_us", filter=accepted), 0),
        )
    )
    return list(sums)


def _activity(row: dict[str, Any], standing: Standing | None) -> Activity:
    sums = {name: value for name, value in row.items() if name != "device_id"}
    if standing is None:
        return Activity(**sums)
    return Activity(
        **sums, failures_in_a_row=standing.failures_in_a_row, benched_until=standing.benched_until
    )
