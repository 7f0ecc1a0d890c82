"""The form in which an operator asks for an adjustment: accounts by e-mail address, the amount in USD."""

import uuid
from decimal import Decimal
from typing import Any

from django import forms
from django.conf import settings
from django.utils.html import escape

from accounts.models import User
from billing.domain.amounts import MAX_AMOUNT_MICROUSD
from billing.models import Adjustment
from billing.services import adjustable_check, reason_checked
from common.errors import NightshiftError
from common.money import MICROUSD_PER_USD, format_usd

ACCOUNTS = (
    "wallet:<an e-mail address>, earnings:<another>, fees, source:grants, source:stripe, source:chargebacks"
)


class AdjustmentForm(forms.ModelForm[Adjustment]):
    """Says beside each field what would be refused. With `number` a form that is sent twice moves money once."""

    usd = forms.DecimalField(
        label="Amount in USD",
        decimal_places=6,
        min_value=Decimal("0.000001"),
        max_value=Decimal(MAX_AMOUNT_MICROUSD // MICROUSD_PER_USD),
        widget=forms.NumberInput(attrs={"step": "0.000001", "inputmode": "decimal"}),
    )
    number = forms.UUIDField(widget=forms.HiddenInput)

    class Meta:
        model = Adjustment
        fields = ("from_key", "to_key", "reason")
        widgets = {"reason": forms.TextInput(attrs={"size": 80})}
        help_texts = {
            "from_key": escape(f"where the money is taken: {ACCOUNTS}"),
            "to_key": "where it goes, likewise",
            "reason": "why; it is written in the audit log, and on the statements of the people concerned",
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        limit = format_usd(settings.ADJUSTMENT_LIMIT_MICROUSD)
        self.fields["usd"].help_text = f"as 12.50; above {limit} another operator has to approve it"
        self.fields["number"].initial = uuid.uuid4()

    def clean_from_key(self) -> str:
        return self._account("from_key")

    def clean_to_key(self) -> str:
        return self._account("to_key")

    def clean_reason(self) -> str:
        try:
            return reason_checked(self.cleaned_data["reason"])
        except NightshiftError as refusal:
            raise forms.ValidationError(refusal.message) from refusal

    @property
    def amount_microusd(self) -> int:
        usd: Decimal = self.cleaned_data["usd"]
        return int(usd * MICROUSD_PER_USD)

    def _account(self, field: str) -> str:
        key = account_key_typed(self.cleaned_data[field])
        try:
            adjustable_check(key, field=field)
        except NightshiftError as refusal:
            nobody = "Nobody has this address." if "@" in key else "There is no such account."
            raise forms.ValidationError(f"{nobody} It is one of: {ACCOUNTS}.") from refusal
        return key


def account_key_typed(text: str) -> str:
    """The key of the account that an operator means: `wallet:bea@example.org` is `wallet:7`. Anything else stays."""
    kind, colon, rest = text.strip().partition(":")
    if "@" in rest:
        user_id = User.objects.filter(email=rest.strip().lower()).values_list("pk", flat=True).first()
        rest = rest if user_id is None else str(user_id)
    return f"{kind}{colon}{rest}"
