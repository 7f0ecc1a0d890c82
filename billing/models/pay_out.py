"""Money that owners are paid: their account at Stripe, and each payout with its steps."""

import uuid

from django.conf import settings
from django.db import models
from django.db.models import F, Q

from common.money import format_usd


class PayoutAccount(models.Model):
    """An owner's recipient account at Stripe, as last heard of. `billing.domain.capability` puts it into words."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, primary_key=True, related_name="payout_account"
    )
    country = models.CharField(max_length=2)
    stripe_id = models.CharField(max_length=60, blank=True)
    transfers_status = models.CharField(max_length=20, default="unopened")
    status_code = models.CharField(max_length=60, blank=True, help_text="Stripe's reason for the status")
    pays_by_hand = models.BooleanField(default=False, help_text="Stripe pays out only when we say so")
    weekly = models.BooleanField(default=False, help_text="pay out what is available every Monday")
    weekly_note = models.CharField(max_length=200, blank=True, help_text="why the last Monday paid nothing")
    weekly_done_on = models.DateField(null=True, help_text="the last Monday that was seen to")

    heard_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["stripe_id"], condition=~Q(stripe_id=""), name="payout_account_is_one_owners"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.user_id}: {self.transfers_status}"


class Payout(models.Model):
    """One payout. `billing.domain.payout_states` has its table of transitions; `steps` is its story."""

    class State(models.TextChoices):
        REQUESTED = "requested"
        DEBITED = "debited"  # out of the earnings
        TRANSFERRED = "transferred"  # in the owner's account at Stripe
        PAID = "paid"  # at the owner's bank
        FAILED = "failed"  # the bank refused it: it waits in the owner's account at Stripe
        RETURNED = "returned"  # it never left, or was reversed: back in the earnings

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="payouts")
    idempotency_key = models.CharField(max_length=80)
    amount_microusd = models.BigIntegerField(help_text="what leaves the earnings")
    fee_microusd = models.BigIntegerField(help_text="the platform's part of it")
    stripe_account = models.CharField(max_length=60)
    state = models.CharField(max_length=12, choices=State.choices, default=State.REQUESTED)
    because = models.CharField(max_length=200, blank=True, help_text="one sentence for the owner")
    frozen_because = models.CharField(max_length=200, blank=True, help_text="why an operator has stopped it")
    transfer_id = models.CharField(max_length=120, blank=True)
    arrived_as = models.CharField(max_length=120, blank=True, help_text="the payment in the owner's account")
    bank_attempt = models.PositiveSmallIntegerField(default=1)
    bank_payout_id = models.CharField(max_length=120, blank=True)
    tries = models.PositiveSmallIntegerField(default=0)
    next_try_at = models.DateTimeField(null=True, help_text="empty: nothing to do, or an operator must look")
    created_at = models.DateTimeField()

    class Meta:
        ordering = ["-created_at", "-id"]
        indexes = [
            models.Index(fields=["user", "-created_at"], name="payout_of_a_user"),
            models.Index(fields=["next_try_at"], condition=Q(next_try_at__isnull=False), name="payout_due"),
        ]
        constraints = [
            models.UniqueConstraint(fields=["user", "idempotency_key"], name="payout_is_asked_for_once"),
            models.CheckConstraint(
                name="payout_is_more_than_its_fee",
                condition=Q(fee_microusd__gte=0) & Q(amount_microusd__gt=F("fee_microusd")),
            ),
            models.CheckConstraint(
                name="payout_that_went_out_knows_its_transfer",
                condition=Q(state__in=["requested", "debited", "returned"]) | ~Q(transfer_id=""),
            ),
            models.CheckConstraint(
                name="payout_is_frozen_only_on_its_way",
                condition=Q(frozen_because="") | Q(state__in=["debited", "transferred", "failed"]),
            ),
            models.UniqueConstraint(
                fields=["transfer_id"],
                condition=~Q(transfer_id=""),
                name="payout_has_a_transfer_of_its_own",
            ),
            models.UniqueConstraint(
                fields=["bank_payout_id"],
                condition=~Q(bank_payout_id=""),
                name="payout_has_a_bank_payout_of_its_own",
            ),
        ]

    def __str__(self) -> str:
        return f"{format_usd(self.amount_microusd)} to {self.user_id}: {self.state}"

    @property
    def net_microusd(self) -> int:
        return self.amount_microusd - self.fee_microusd

    @property
    def currency(self) -> str:
        return "usd"


class PayoutStep(models.Model):
    """One state that a payout came to, and when: written with the change."""

    payout = models.ForeignKey(Payout, on_delete=models.PROTECT, related_name="steps")
    state = models.CharField(max_length=12, choices=Payout.State.choices)
    because = models.CharField(max_length=200, blank=True)
    at = models.DateTimeField()

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return f"{self.payout_id}: {self.state}"
