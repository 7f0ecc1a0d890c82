"""Where owners' own programs want to hear of payouts, and what was sent there."""

import uuid

from django.conf import settings
from django.db import models
from django.db.models import Q


class OwnerHook(models.Model):
    """An address of an owner's that is told of each new state of a payout. The secret signs what is sent."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="payout_hooks")
    url = models.URLField(max_length=300)
    secret = models.CharField(max_length=64)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["created_at"]
        constraints = [models.UniqueConstraint(fields=["user", "url"], name="owner_hook_is_told_once")]

    def __str__(self) -> str:
        return self.url


class OwnerDelivery(models.Model):
    """One piece of news for one address: the log, too."""

    class State(models.TextChoices):
        WAITING = "waiting"
        DELIVERED = "delivered"
        GIVEN_UP = "given_up"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    hook = models.ForeignKey(OwnerHook, on_delete=models.CASCADE, related_name="deliveries")
    type = models.CharField(max_length=40)
    body = models.TextField(help_text="the bytes that are signed and sent")
    state = models.CharField(max_length=10, choices=State.choices, default=State.WAITING)
    tries = models.PositiveSmallIntegerField(default=0)
    last_answer = models.CharField(max_length=100, blank=True)
    next_try_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField()
    delivered_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-created_at", "-id"]
        indexes = [
            models.Index(
                fields=["next_try_at"], condition=Q(next_try_at__isnull=False), name="owner_delivery_due"
            )
        ]
        constraints = [
            models.CheckConstraint(
                name="owner_delivery_waits_or_is_over",
                condition=Q(state="waiting", next_try_at__isnull=False)
                | (~Q(state="waiting") & Q(next_try_at=None)),
            )
        ]

    def __str__(self) -> str:
        return f"{self.type} to {self.hook_id}"
