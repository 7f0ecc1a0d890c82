"""Owners with earnings and an account at Stripe, for the tests of payouts."""

from datetime import datetime, timedelta

from accounts.models import User
from billing.models import Payout
from billing.services import Charge, hold_charge, hold_open, payout_account_open, payout_account_sync
from common.clock import utc_now
from tests.billing.cast import USD, buyer, person
from tests.fake_stripe import FakeStripe

LONG_AGO = timedelta(days=30)


def earner(name: str = "otto", *, usd: int = 80, device_id=None, earned_at: datetime | None = None) -> User:
    """An owner who earned that much net (the fee is a fifth) and can be paid it, unless it was earned just now."""
    owner = person(name)
    earn(owner, usd=usd, device_id=device_id, earned_at=earned_at)
    return owner


def earn(
    owner: User, *, usd: int, label: str = "1", device_id=None, earned_at: datetime | None = None
) -> None:
    gross = usd * USD * 5 // 4
    reference = f"job:{owner.pk}:{label}"
    hold_open(
        user=buyer(f"buyer of {reference}", wallet_microusd=gross), reference=reference, amount_microusd=gross
    )
    charge = Charge(
        idempotency_key=f"lease:{reference}", owner_id=owner.pk, amount_microusd=gross, device_id=device_id
    )
    hold_charge(reference=reference, charges=[charge], now=earned_at or utc_now() - LONG_AGO)


def ready(stripe: FakeStripe, owner: User, *, country: str = "US") -> User:
    """The owner's account at Stripe is open and can be paid; the platform has money there."""
    account = payout_account_open(user=owner, country=country)
    stripe.world.onboard(account.stripe_id)
    payout_account_sync(stripe_id=account.stripe_id)
    stripe.world.balance_cents = max(stripe.world.balance_cents, 1_000_000)
    return owner


def states(payout: Payout) -> list[str]:
    return list(payout.steps.values_list("state", flat=True))
