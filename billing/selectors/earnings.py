"""What an owner has earned: what matures, what can be paid out, and by which device on which day."""

from dataclasses import dataclass
from datetime import date, datetime
from typing import Any
from uuid import UUID

from django.db.models import Count, Min, Q, QuerySet, Sum
from django.db.models.functions import Coalesce

from accounts.models import User
from billing.models import Earning, Payout
from billing.selectors.ledger import earnings_balance

_ON_THE_WAY = (Payout.State.REQUESTED, Payout.State.DEBITED, Payout.State.TRANSFERRED, Payout.State.FAILED)


@dataclass(frozen=True, slots=True)
class EarningsBalances:
    """An owner's money in micro-USD: in the hold-back, free to be paid out, under way, and at the bank."""

    maturing_microusd: int
    available_microusd: int
    on_the_way_microusd: int
    paid_microusd: int
    next_matures_at: datetime | None


def available_microusd(user: User, *, now: datetime) -> int:
    """What can be paid out: the balance without what is still held back."""
    maturing_microusd, _ = _maturing(user, now)
    return _available(user, maturing_microusd)


def earnings_balances(user: User, *, now: datetime) -> EarningsBalances:
    maturing_microusd, next_matures_at = _maturing(user, now)
    paid_out = Payout.objects.filter(user=user).aggregate(
        on_the_way=Coalesce(Sum("amount_microusd", filter=Q(state__in=_ON_THE_WAY)), 0),
        paid=Coalesce(Sum("amount_microusd", filter=Q(state=Payout.State.PAID)), 0),
    )
    return EarningsBalances(
        maturing_microusd=maturing_microusd,
        available_microusd=_available(user, maturing_microusd),
        on_the_way_microusd=paid_out["on_the_way"],
        paid_microusd=paid_out["paid"],
        next_matures_at=next_matures_at,
    )


def _maturing(user: User, now: datetime) -> tuple[int, datetime | None]:
    """What is still held back, and when the first of it is free."""
    held_back = Earning.objects.filter(owner=user, matures_at__gt=now).aggregate(
        total=Coalesce(Sum("amount_microusd"), 0), first=Min("matures_at")
    )
    return held_back["total"], held_back["first"]


def _available(user: User, maturing_microusd: int) -> int:
    # A correction or a chargeback may have taken some of what matures.
    return max(0, earnings_balance(user) - maturing_microusd)


def earnings_by_day(
    user: User, *, since: date | None = None, until: date | None = None, device_id: UUID | None = None
) -> QuerySet[Earning, Any]:
    """One row a day and device, newest first. Without dates, of all days."""
    earnings = Earning.objects.filter(owner=user)
    if since is not None:
        earnings = earnings.filter(day__gte=since)
    if until is not None:
        earnings = earnings.filter(day__lte=until)
    if device_id is not None:
        earnings = earnings.filter(device_id=device_id)
    return (
        earnings.values("day", "device_id")
        .annotate(
            charges=Count("pk"),
            net_microusd=Sum("amount_microusd"),
            deducted_microusd=Sum("fee_microusd"),
            gross_microusd=Sum("amount_microusd") + Sum("fee_microusd"),
        )
        .order_by("-day", "device_id")
    )
