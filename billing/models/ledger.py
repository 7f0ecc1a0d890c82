"""The ledger: accounts, transfers that sum to zero, and the holds that set money aside.

Append-only: a transfer and its postings are never changed or deleted; a correction is a new transfer. An account's
`balance_microusd` is the sum of its postings, kept beside them in the same transaction; `check_ledger` recomputes it.
"""

import uuid

from django.conf import settings
from django.db import models
from django.db.models import Q

from common.money import format_usd


class Account(models.Model):
    """A place for money. Only `source` accounts (where money enters the books) may go below zero."""

    class Kind(models.TextChoices):
        SOURCE = "source"  # where money enters and leaves the books: grants, Stripe, chargebacks not covered
        WALLET = "wallet"  # a buyer's money to spend
        HOLD = "hold"  # set aside for one purpose
        EARNINGS = "earnings"  # an owner's
        TRANSIT = (
            "transit"  # debited, and not yet known to have left through Stripe: one for each payout or refund
        )
        FEES = "fees"  # the platform's

    key = models.CharField(max_length=80, unique=True, help_text="as wallet:<user id> or hold:<hold id>")
    kind = models.CharField(max_length=10, choices=Kind.choices)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="accounts"
    )
    balance_microusd = models.BigIntegerField(default=0)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="account_is_not_overdrawn", condition=Q(kind="source") | Q(balance_microusd__gte=0)
            ),
        ]

    def __str__(self) -> str:
        return self.key


class Transfer(models.Model):
    """One balanced movement of money. The same idempotency key moves it once, however often it is asked."""

    class Reason(models.TextChoices):
        GRANT = "grant"
        ADJUSTMENT = "adjustment"
        HOLD = "hold"
        CHARGE = "charge"
        RELEASE = "release"
        TOP_UP = "top_up"
        REFUND = "refund"
        REFUND_SENT = "refund_sent"
        REFUND_RETURNED = "refund_returned"
        CHARGEBACK = "chargeback"
        CHARGEBACK_RETURNED = "chargeback_returned"
        PAYOUT = "payout"
        PAYOUT_SENT = "payout_sent"
        PAYOUT_RETURNED = "payout_returned"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    idempotency_key = models.CharField(max_length=120, unique=True)
    reason = models.CharField(max_length=20, choices=Reason.choices)
    asked = models.CharField(
        max_length=200, help_text="what was asked for under the key, to tell a repeat from a conflict"
    )
    memo = models.CharField(max_length=200, blank=True)
    operator = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.PROTECT,
        null=True,
        related_name="+",
        help_text="who granted or adjusted it",
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-created_at"]
        constraints = [
            models.CheckConstraint(
                name="transfer_of_a_grant_names_its_operator",
                condition=~Q(reason="grant") | Q(operator__isnull=False),
            ),
            models.CheckConstraint(
                name="transfer_of_an_adjustment_names_its_operator",
                condition=~Q(reason="adjustment") | Q(operator__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.reason} {self.idempotency_key}"


class Posting(models.Model):
    """One line of a transfer: `amount_microusd` added to (or, negative, taken from) an account."""

    transfer = models.ForeignKey(Transfer, on_delete=models.PROTECT, related_name="postings")
    account = models.ForeignKey(Account, on_delete=models.PROTECT, related_name="postings")
    amount_microusd = models.BigIntegerField()

    class Meta:
        constraints = [
            models.CheckConstraint(name="posting_moves_something", condition=~Q(amount_microusd=0)),
            models.UniqueConstraint(fields=["transfer", "account"], name="posting_touches_an_account_once"),
        ]

    def __str__(self) -> str:
        return f"{format_usd(self.amount_microusd)} {self.account_id}"


class Hold(models.Model):
    """Money of a buyer set aside for one purpose, named by `reference` (as job:<id>)."""

    class State(models.TextChoices):
        OPEN = "open"
        RELEASED = "released"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    reference = models.CharField(max_length=80, unique=True)
    account = models.OneToOneField(Account, on_delete=models.PROTECT, related_name="hold")
    wallet = models.ForeignKey(Account, on_delete=models.PROTECT, related_name="holds")
    amount_microusd = models.BigIntegerField()
    fee_basis_points = models.PositiveIntegerField(
        help_text="the platform's part of what is charged to it, as agreed when it was opened"
    )
    state = models.CharField(max_length=10, choices=State.choices, default=State.OPEN)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.CheckConstraint(name="hold_is_positive", condition=Q(amount_microusd__gt=0)),
            models.CheckConstraint(name="hold_fee_is_a_share", condition=Q(fee_basis_points__lte=10_000)),
        ]

    def __str__(self) -> str:
        return f"{self.reference}: {format_usd(self.amount_microusd)}"
