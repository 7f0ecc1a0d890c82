"""What a person may do with money just now, and what operators did about it."""

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


class OperatorAction(models.Model):
    """The audit log: who did what to whose money, and why. Written with the effect, never changed."""

    operator = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    action = models.CharField(max_length=40)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+")
    subject = models.CharField(max_length=120, blank=True)
    reason = models.CharField(max_length=200)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.CheckConstraint(name="operator_action_says_why", condition=~models.Q(reason="")),
        ]

    def __str__(self) -> str:
        return f"{self.action} {self.subject}"
