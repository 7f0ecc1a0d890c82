"""The audit log: what operators did with money, and why."""

from django.conf import settings
from django.db import models
from django.db.models import Q


class OperatorAction(models.Model):
    """Who did what to whose money, when and why. Written with its effect; the database refuses to change it.

    `before` and `after` are what the action changed, and nothing else of it.
    """

    operator = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    action = models.CharField(max_length=40)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+")
    subject = models.CharField(max_length=120, blank=True, help_text="what it was done to, as payout:<id>")
    reason = models.CharField(max_length=200)
    before = models.JSONField(default=dict)
    after = models.JSONField(default=dict)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.CheckConstraint(name="operator_action_says_why", condition=~Q(reason="")),
            models.CheckConstraint(name="operator_action_says_what", condition=~Q(action="")),
        ]

    def __str__(self) -> str:
        return f"{self.action} {self.subject}"
