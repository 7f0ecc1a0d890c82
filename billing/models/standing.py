"""What a person may do with money just now."""

from django.conf import settings
from django.db import models


class Standing(models.Model):
    """Freezes of one person's money; no row, no freeze. An empty reason means that it is not frozen."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, primary_key=True, related_name="money_standing"
    )
    wallet_frozen_because = models.CharField(max_length=200, blank=True)
    payouts_frozen_because = models.CharField(max_length=200, blank=True)

    def __str__(self) -> str:
        return f"standing of {self.user_id}"
