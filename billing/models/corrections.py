"""Corrections by operators: adjustments of the books, and what reconciliation could not pair."""

import uuid

from django.conf import settings
from django.db import models
from django.db.models import F, Q

from billing.models.ledger import Transfer
from common.money import format_usd


class Adjustment(models.Model):
    """Money that an operator moves between two accounts, for a reason; above a limit, another one must approve."""

    class State(models.TextChoices):
        WAITING = "waiting"  # for a second operator
        POSTED = "posted"
        DECLINED = "declined"  # by the second, or taken back by the first

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    from_key = models.CharField("from", max_length=80, help_text="the account's key, as source:grants")
    to_key = models.CharField("to", max_length=80, help_text="the account's key, as wallet:<user id>")
    amount_microusd = models.BigIntegerField()
    reason = models.CharField(max_length=200)
    state = models.CharField(max_length=10, choices=State.choices, default=State.WAITING)
    operator = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+"
    )
    transfer = models.OneToOneField(Transfer, on_delete=models.PROTECT, null=True, related_name="adjustment")
    created_at = models.DateTimeField()
    decided_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-created_at", "-id"]
        constraints = [
            models.CheckConstraint(
                name="adjustment_is_positive",
                condition=Q(amount_microusd__gt=0),
                violation_error_message="The amount must be more than zero.",
            ),
            models.CheckConstraint(name="adjustment_says_why", condition=~Q(reason="")),
            models.CheckConstraint(
                name="adjustment_moves_between_two",
                condition=~Q(from_key=F("to_key")),
                violation_error_message="Name two different accounts.",
            ),
            models.CheckConstraint(
                name="adjustment_is_posted_with_its_transfer",
                condition=Q(state="posted", transfer__isnull=False) | (~Q(state="posted") & Q(transfer=None)),
            ),
            models.CheckConstraint(
                name="adjustment_waits_or_was_decided",
                condition=Q(state="waiting", decided_at=None)
                | (~Q(state="waiting") & Q(decided_at__isnull=False)),
            ),
            models.CheckConstraint(
                name="adjustment_is_approved_by_another",
                condition=Q(decided_by=None) | ~Q(state="posted") | ~Q(decided_by=F("operator")),
            ),
        ]

    def __str__(self) -> str:
        return f"{format_usd(self.amount_microusd)} from {self.from_key} to {self.to_key}"


class Unmatched(models.Model):
    """A movement that Stripe and the books do not agree about, as reconciliation last found it.

    A side that says nothing has no amount. An operator resolves it; one that agrees by itself later is `healed`.
    """

    class State(models.TextChoices):
        OPEN = "open"
        PAIRED = "paired"  # with another one of these: the same money under two names
        ADJUSTED = "adjusted"  # the books were corrected
        IGNORED = "ignored"
        HEALED = "healed"  # found to agree later

    stripe_id = models.CharField(max_length=120, blank=True)
    ledger_key = models.CharField(max_length=120, blank=True)
    kind = models.CharField(max_length=40)
    stripe_microusd = models.BigIntegerField("Stripe says", null=True)
    ledger_microusd = models.BigIntegerField("the books say", null=True)
    moved_at = models.DateTimeField()
    state = models.CharField(max_length=10, choices=State.choices, default=State.OPEN)
    reason = models.CharField(max_length=200, blank=True)
    resolved_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+"
    )
    paired_with = models.OneToOneField("self", on_delete=models.PROTECT, null=True, related_name="+")
    adjustment = models.OneToOneField(
        Adjustment, on_delete=models.PROTECT, null=True, related_name="unmatched"
    )
    found_at = models.DateTimeField()
    seen_at = models.DateTimeField()

    class Meta:
        ordering = ["-found_at", "-id"]
        verbose_name = verbose_name_plural = "unmatched movements"
        constraints = [
            models.UniqueConstraint(fields=["stripe_id", "ledger_key"], name="unmatched_is_listed_once"),
            models.CheckConstraint(
                name="unmatched_has_a_side",
                condition=Q(stripe_microusd__isnull=False) | Q(ledger_microusd__isnull=False),
            ),
            models.CheckConstraint(
                name="unmatched_is_resolved_by_someone_for_a_reason",
                condition=Q(state__in=["open", "healed"]) | (Q(resolved_by__isnull=False) & ~Q(reason="")),
            ),
            models.CheckConstraint(
                name="unmatched_is_paired_with_another",
                condition=~Q(state="paired") | Q(paired_with__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return self.stripe_id or self.ledger_key

    @property
    def difference_microusd(self) -> int:
        """What Stripe has more than the books say that it has."""
        return (self.stripe_microusd or 0) - (self.ledger_microusd or 0)
