"""What a payout costs its owner, by this site's settings."""

from django.conf import settings


def payout_fee_microusd() -> int:
    """Taken off each payout, towards what Stripe takes from the platform for it."""
    fee: int = settings.PAYOUT_FEE_MICROUSD
    return fee
