"""The forms of money. They parse; the services decide."""

import uuid
from decimal import Decimal
from typing import Any

from django import forms

from billing.domain.countries import COUNTRIES
from common.money import MICROUSD_PER_USD


class AmountForm(forms.Form):
    """An amount in USD, and a key so that a form that is sent twice moves money once."""

    usd = forms.DecimalField(
        label="Amount in USD",
        max_digits=9,
        decimal_places=2,
        widget=forms.NumberInput(attrs={"step": "0.01"}),
    )
    key = forms.CharField(widget=forms.HiddenInput, max_length=80)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not self.is_bound:
            self.fields["key"].initial = str(uuid.uuid4())

    @property
    def amount_microusd(self) -> int:
        usd: Decimal = self.cleaned_data["usd"]
        return int(usd * MICROUSD_PER_USD)


class CountryForm(forms.Form):
    country = forms.ChoiceField(
        choices=[("", "Choose"), *((country.code, country.name) for country in COUNTRIES.values())],
        help_text="Where your bank is. Payouts reach these countries; elsewhere your balance is kept for you.",
    )
