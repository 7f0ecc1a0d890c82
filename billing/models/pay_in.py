"""Money that buyers pay in by card, and how it may go back: refunds and chargebacks."""

import uuid

from django.conf import settings
from django.db import models
from django.db.models import F, Q

from common.money import format_usd


class TopUp(models.Model):
    """A payment into a wallet: on Stripe's hosted page, or, `automatic`, by the card that the buyer has saved."""

    class State(models.TextChoices):
        CREATED = "created"  # stored; Stripe's page is not known to exist
        OPEN = "open"  # the page waits for the buyer
        PAID = "paid"
        EXPIRED = "expired"  # the page was not used, or the payment failed
        REFUSED = "refused"  # Stripe would not open a page

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="top_ups")
    idempotency_key = models.CharField(max_length=80)
    amount_microusd = models.BigIntegerField()
    refunded_microusd = models.BigIntegerField(default=0, help_text="refunds under way or done")
    state = models.CharField(max_length=10, choices=State.choices, default=State.CREATED)
    session_id = models.CharField(max_length=120, blank=True)
    page_url = models.TextField(blank=True)
    payment_intent_id = models.CharField(max_length=120, blank=True)
    because = models.CharField(max_length=200, blank=True)
    automatic = models.BooleanField(
        default=False, help_text="charged to the saved card when the wallet ran low"
    )
    tries = models.PositiveSmallIntegerField(default=0)
    next_try_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField()
    paid_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-created_at"]
        constraints = [
            models.UniqueConstraint(fields=["user", "idempotency_key"], name="top_up_is_asked_for_once"),
            models.UniqueConstraint(
                fields=["user"],
                condition=Q(automatic=True, state__in=["created", "open"]),
                name="top_up_automatic_is_one_at_a_time",
            ),
            models.CheckConstraint(name="top_up_is_positive", condition=Q(amount_microusd__gt=0)),
            models.CheckConstraint(
                name="top_up_is_refunded_at_most_whole",
                condition=Q(refunded_microusd__gte=0) & Q(refunded_microusd__lte=F("amount_microusd")),
            ),
            models.CheckConstraint(
                name="top_up_paid_knows_its_payment",
                condition=~Q(state="paid") | (~Q(payment_intent_id="") & Q(paid_at__isnull=False)),
            ),
            models.UniqueConstraint(
                fields=["payment_intent_id"],
                condition=~Q(payment_intent_id=""),
                name="top_up_has_a_payment_of_its_own",
            ),
        ]

    def __str__(self) -> str:
        return f"{format_usd(self.amount_microusd)} by {self.user_id}"


class Refund(models.Model):
    """Unspent money of one top-up on its way back to its card."""

    class State(models.TextChoices):
        DEBITED = "debited"  # out of the wallet; Stripe is not known to have it
        SENT = "sent"  # Stripe refunds it
        RETURNED = "returned"  # Stripe refused, or the card's bank did: back in the wallet

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    top_up = models.ForeignKey(TopUp, on_delete=models.PROTECT, related_name="refunds")
    idempotency_key = models.CharField(max_length=80)
    amount_microusd = models.BigIntegerField()
    state = models.CharField(max_length=10, choices=State.choices, default=State.DEBITED)
    stripe_id = models.CharField(max_length=120, blank=True)
    because = models.CharField(max_length=200, blank=True)
    tries = models.PositiveSmallIntegerField(default=0)
    next_try_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField()

    class Meta:
        ordering = ["-created_at"]
        constraints = [
            models.UniqueConstraint(fields=["top_up", "idempotency_key"], name="refund_is_asked_for_once"),
            models.CheckConstraint(name="refund_is_positive", condition=Q(amount_microusd__gt=0)),
            models.CheckConstraint(
                name="refund_sent_knows_stripes_id", condition=~Q(state="sent") | ~Q(stripe_id="")
            ),
            models.UniqueConstraint(
                fields=["stripe_id"], condition=~Q(stripe_id=""), name="refund_has_an_id_of_its_own"
            ),
        ]

    def __str__(self) -> str:
        return f"{format_usd(self.amount_microusd)} of {self.top_up_id}"


class Dispute(models.Model):
    """A chargeback: the card's holder wants a top-up back, and Stripe has taken it from us until it is decided."""

    stripe_id = models.CharField(max_length=120, primary_key=True)
    top_up = models.ForeignKey(TopUp, on_delete=models.PROTECT, related_name="disputes")
    amount_microusd = models.BigIntegerField()
    status = models.CharField(max_length=40, help_text="in Stripe's words")
    from_wallet_microusd = models.BigIntegerField(default=0, help_text="what the wallet could still cover")
    withdrawn_at = models.DateTimeField(null=True)
    reinstated_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="dispute_takes_no_more_than_it_is_about",
                condition=Q(from_wallet_microusd__gte=0) & Q(from_wallet_microusd__lte=F("amount_microusd")),
            ),
            models.CheckConstraint(
                name="dispute_gives_back_what_it_took",
                condition=Q(reinstated_at=None) | Q(withdrawn_at__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.stripe_id}: {format_usd(self.amount_microusd)}"
