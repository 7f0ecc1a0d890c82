"""What a buyer has agreed to for when the wallet runs low."""

from django.conf import settings
from django.db import models
from django.db.models import F, Q


class AutoTopUp(models.Model):
    """One buyer's terms and saved card. Nothing is charged unless it is `on`, which takes the buyer's clear yes."""

    class State(models.TextChoices):
        OFF = "off"
        SETTING_UP = "setting_up"  # agreed to; Stripe's page waits for the card
        ON = "on"

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, primary_key=True, related_name="auto_top_up"
    )
    state = models.CharField(max_length=10, choices=State.choices, default=State.OFF)
    threshold_microusd = models.BigIntegerField(help_text="it tops up when the wallet has less")
    amount_microusd = models.BigIntegerField(help_text="of each top-up")
    monthly_cap_microusd = models.BigIntegerField(help_text="all together in one month (UTC) at most")
    agreed_at = models.DateTimeField(help_text="when the buyer said yes to these terms")
    customer_id = models.CharField(max_length=120, blank=True)
    payment_method_id = models.CharField(max_length=120, blank=True)
    card = models.CharField(max_length=60, blank=True, help_text="as Visa ending in 4242")
    set_up_number = models.PositiveIntegerField(default=0)
    set_up_url = models.TextField(blank=True)
    detach_id = models.CharField(max_length=120, blank=True, help_text="a removed card that Stripe still has")
    declines = models.PositiveSmallIntegerField(default=0, help_text="in a row")
    note = models.CharField(max_length=200, blank=True, help_text="why it is off, or waits: for the buyer")
    tries = models.PositiveSmallIntegerField(default=0)
    next_try_at = models.DateTimeField(null=True, help_text="when to look whether the wallet is low")

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="auto_top_up_is_within_its_cap",
                condition=Q(amount_microusd__gt=0)
                & Q(threshold_microusd__gte=0)
                & Q(monthly_cap_microusd__gte=F("amount_microusd")),
            ),
            models.CheckConstraint(
                name="auto_top_up_that_is_on_has_a_card",
                condition=~Q(state="on") | (~Q(payment_method_id="") & ~Q(customer_id="")),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.user_id}: {self.state}"
