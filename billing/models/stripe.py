"""What is said with Stripe: calls, stored before they are made; events, stored before they are handled."""

from django.db import models
from django.db.models import Q


class StripeCall(models.Model):
    """A request that changes something at Stripe. It is stored with its idempotency key before it is made.

    So a process may die at any moment: whoever comes next makes the same request under the same key, and Stripe does
    it once.
    """

    class State(models.TextChoices):
        BEGUN = "begun"  # perhaps made, perhaps done: not known yet
        ANSWERED = "answered"
        REFUSED = "refused"  # Stripe has said no, and will say no again

    key = models.CharField(max_length=120, unique=True, help_text="the idempotency key")
    operation = models.CharField(max_length=40)
    stripe_account = models.CharField(
        max_length=60, blank=True, help_text="the connected account it acts for"
    )
    params = models.JSONField()
    state = models.CharField(max_length=10, choices=State.choices, default=State.BEGUN)
    answer = models.JSONField(
        default=dict, help_text="what we need of the answer, or the refusal's code and words"
    )
    tries = models.PositiveSmallIntegerField(default=0)
    last_problem = models.CharField(max_length=200, blank=True)
    begun_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="stripe_call_ends_with_its_answer",
                condition=Q(state="begun", ended_at=None) | (~Q(state="begun") & Q(ended_at__isnull=False)),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.operation} {self.key}"


class StripeEvent(models.Model):
    """A webhook as it came: the bytes that were signed. Kept whatever its type, handled once."""

    class State(models.TextChoices):
        RECEIVED = "received"
        EARLY = "early"  # about something that other events have yet to tell of
        HANDLED = "handled"
        IGNORED = "ignored"  # of no concern to us
        FAILED = "failed"  # for an operator to look at and replay

    event_id = models.CharField(max_length=80, unique=True)
    type = models.CharField(max_length=100)
    stripe_account = models.CharField(
        max_length=60, blank=True, help_text="the connected account it is about"
    )
    object_id = models.CharField(max_length=80, db_index=True)
    occurred_at = models.DateTimeField()
    body = models.TextField(help_text="as it was signed")
    state = models.CharField(max_length=10, choices=State.choices, default=State.RECEIVED)
    note = models.CharField(max_length=200, blank=True)
    tries = models.PositiveSmallIntegerField(default=0)
    next_try_at = models.DateTimeField(null=True, help_text="empty: not by itself")
    received_at = models.DateTimeField()
    handled_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-received_at", "-id"]
        indexes = [
            models.Index(
                fields=["next_try_at"], condition=Q(next_try_at__isnull=False), name="stripe_event_due"
            )
        ]

    def __str__(self) -> str:
        return f"{self.type} {self.event_id}"
