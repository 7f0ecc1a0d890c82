"""Top-ups, refunds and payouts, each one checked against its owner."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import QuerySet, Sum
from django.db.models.functions import Coalesce

from accounts.models import User
from billing.domain.amounts import MICROUSD_PER_CENT
from billing.domain.auto_top_ups import month_of
from billing.domain.capability import READY, in_words
from billing.domain.countries import payout_country
from billing.errors import PayoutNotFound, TopUpNotFound
from billing.models import AutoTopUp, OwnerDelivery, OwnerHook, Payout, PayoutAccount, TopUp
from billing.payout_terms import payout_fee_microusd
from billing.selectors.earnings import available_microusd
from billing.selectors.ledger import wallet_balance
from common.money import format_usd

_SPENT = (TopUp.State.CREATED, TopUp.State.OPEN, TopUp.State.PAID)


@dataclass(frozen=True, slots=True)
class PayoutEstimate:
    """What a payout of `gross_microusd` would bring, and, if it would be refused now, why."""

    gross_microusd: int
    fee_microusd: int
    net_microusd: int
    possible: bool
    because: str


def auto_top_up_of(user: User) -> AutoTopUp | None:
    return AutoTopUp.objects.filter(user=user).first()


def auto_top_up_spent_microusd(user: User, *, now: datetime) -> int:
    """What automatic top-ups have charged in this month (UTC), or may yet."""
    charged = TopUp.objects.filter(
        user=user, automatic=True, state__in=_SPENT, created_at__gte=month_of(now)
    ).aggregate(all=Coalesce(Sum("amount_microusd"), 0))
    spent: int = charged["all"]
    return spent


def top_ups_of(user: User) -> QuerySet[TopUp]:
    return TopUp.objects.filter(user=user)


def top_up_of(user: User, top_up_id: UUID) -> TopUp:
    top_up = top_ups_of(user).filter(pk=top_up_id).first()
    if top_up is None:
        raise TopUpNotFound("You have no such top-up.")
    return top_up


def refundable_microusd(top_up: TopUp) -> int:
    """What of a top-up its buyer could have back now: what is not refunded yet, and still in the wallet."""
    if top_up.state != TopUp.State.PAID or top_up.disputes.exists():
        return 0
    left = min(top_up.amount_microusd - top_up.refunded_microusd, wallet_balance(top_up.user))
    return left - left % MICROUSD_PER_CENT


def payouts_of(user: User) -> QuerySet[Payout]:
    return Payout.objects.filter(user=user)


def payout_of(user: User, payout_id: UUID) -> Payout:
    payout = payouts_of(user).filter(pk=payout_id).prefetch_related("steps").first()
    if payout is None:
        raise PayoutNotFound("You have no such payout.")
    return payout


def owner_hooks_of(user: User) -> QuerySet[OwnerHook]:
    return OwnerHook.objects.filter(user=user)


def owner_deliveries_of(user: User) -> QuerySet[OwnerDelivery]:
    return OwnerDelivery.objects.filter(hook__user=user).select_related("hook")


def payout_account_of(user: User) -> PayoutAccount | None:
    return PayoutAccount.objects.filter(user=user).first()


def payout_estimate(user: User, *, amount_microusd: int | None, now: datetime) -> PayoutEstimate:
    """The estimate for this amount, or for all that is available. It reserves nothing."""
    available = available_microusd(user, now=now)
    gross = available - available % MICROUSD_PER_CENT if amount_microusd is None else amount_microusd
    fee = min(gross, payout_fee_microusd())
    because = _hindrance(payout_account_of(user), gross, available)
    return PayoutEstimate(
        gross_microusd=gross,
        fee_microusd=fee,
        net_microusd=gross - fee,
        possible=not because,
        because=because,
    )


def _hindrance(account: PayoutAccount | None, gross_microusd: int, available: int) -> str:
    if account is None:
        return "Open an account for payouts first."
    if account.transfers_status != READY:
        return in_words(account.transfers_status, account.status_code)
    least = payout_country(account.country).minimum_microusd
    if gross_microusd < least:
        return f"The least that can be paid out in your country is {format_usd(least)}."
    if gross_microusd > available:
        return f"{format_usd(available)} can be paid out now; the rest is still maturing."
    return ""
