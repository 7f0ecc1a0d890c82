"""Whether a person's money is frozen, in words."""

from accounts.models import User
from billing.models import Standing


def wallet_frozen_because(user: User) -> str:
    """The reason of the freeze, a sentence; empty if there is none."""
    return Standing.objects.filter(user=user).values_list("wallet_frozen_because", flat=True).first() or ""
