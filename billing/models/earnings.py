"""What each charge earned an owner: by which device, on which day, and from when on it can be paid out."""

from django.conf import settings
from django.db import models
from django.db.models import Q

from billing.models.ledger import Transfer
from common.money import format_usd


class Earning(models.Model):
    """One charge as its owner sees it, written with its transfer and never changed.

    The postings say what moved; this says what only the charge knew. `amount_microusd` is what the owner gets, the
    fee has been taken off.
    """

    transfer = models.OneToOneField(
        Transfer, on_delete=models.PROTECT, primary_key=True, related_name="earning"
    )
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="earnings_by_charge"
    )
    device_id = models.UUIDField(
        null=True, help_text="the device that did the work, where the charge named one"
    )
    day = models.DateField(help_text="the day of the charge, in UTC")
    amount_microusd = models.BigIntegerField()
    fee_microusd = models.BigIntegerField()
    matures_at = models.DateTimeField(help_text="from then on it can be paid out")

    class Meta:
        indexes = [
            models.Index(fields=["owner", "day", "device_id"], name="earning_by_day_and_device"),
            models.Index(fields=["owner", "matures_at"], name="earning_by_maturity"),
        ]
        constraints = [
            models.CheckConstraint(
                name="earning_and_its_fee_are_not_negative",
                condition=Q(amount_microusd__gte=0) & Q(fee_microusd__gte=0),
            ),
        ]

    def __str__(self) -> str:
        return f"{format_usd(self.amount_microusd)} on {self.day}"
