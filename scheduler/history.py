"""Reads of what devices did over some hours: when connected, blocked by what, and what became of their leases.

Two queries, however many devices and hours; `scheduler.domain.spells` says how the record is kept.
"""

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from django.db.models import Q

from common.money import fee_microusd
from scheduler.models import Lease, Spell


@dataclass(frozen=True, slots=True)
class PastSpell:
    """The device was connected; `blocked` kept it from work, or nothing (None). Still so while `ended_at` is None."""

    blocked: str | None
    began_at: datetime
    ended_at: datetime | None


@dataclass(frozen=True, slots=True)
class PastLease:
    """A lease that lives (`ended_at` is None) or what became of it. Earnings are the owner's, the fee taken."""

    state: str
    reason: str
    granted_at: datetime
    ended_at: datetime | None
    earned_microusd: int = 0

    @property
    def accepted(self) -> bool:
        return self.state == Lease.State.ACCEPTED

    @property
    def failed(self) -> bool:
        """It came to nothing and the device had a part in that."""
        return self.state in _FAILED


@dataclass(slots=True)
class History:
    """One device's spells and leases that touch the time asked for, oldest first."""

    spells: list[PastSpell] = field(default_factory=list)
    leases: list[PastLease] = field(default_factory=list)


_FAILED = frozenset({Lease.State.REFUSED, Lease.State.EXPIRED, Lease.State.HANDED_BACK})


def device_histories(
    *, device_ids: Collection[UUID], since: datetime, until: datetime
) -> dict[UUID, History]:
    """By device; one of which nothing is known has an empty history."""
    histories: defaultdict[UUID, History] = defaultdict(History)
    for device_id, blocked, began_at, ended_at in _spells(device_ids, since, until):
        histories[device_id].spells.append(PastSpell(blocked, began_at, ended_at))
    for device_id, state, reason, granted_at, ended_at, charge, fee in _leases(device_ids, since, until):
        earned = 0
        if state == Lease.State.ACCEPTED:
            earned = charge - fee_microusd(amount_microusd=charge, fee_basis_points=fee)
        histories[device_id].leases.append(PastLease(state, reason, granted_at, ended_at, earned))
    return {device_id: histories[device_id] for device_id in device_ids}


def _touching(since: datetime) -> Q:
    return Q(ended_at__gt=since) | Q(ended_at=None)


def _spells(
    device_ids: Collection[UUID], since: datetime, until: datetime
) -> list[tuple[UUID, str | None, datetime, datetime | None]]:
    spells = Spell.objects.filter(_touching(since), device_id__in=device_ids, began_at__lt=until)
    return list(spells.order_by("began_at").values_list("device_id", "blocked", "began_at", "ended_at"))


def _leases(
    device_ids: Collection[UUID], since: datetime, until: datetime
) -> list[tuple[UUID, str, str, datetime, datetime | None, int, int]]:
    leases = Lease.objects.filter(_touching(since), device_id__in=device_ids, granted_at__lt=until)
    columns = (
        "device_id",
        "state",
        "reason",
        "granted_at",
        "ended_at",
        "charge_microusd",
        "fee_basis_points",
    )
    return list(leases.order_by("granted_at").values_list(*columns))
