"""The forms of money. They parse; the services decide."""

import uuid
from decimal import Decimal
from typing import Any, ClassVar

from django import forms

from billing.domain.auto_top_ups import Terms
from billing.domain.countries import COUNTRIES
from common.money import MICROUSD_PER_USD


def _usd(label: str, **kwargs: Any) -> forms.DecimalField:
    widget = forms.NumberInput(attrs={"step": "0.01"})
    return forms.DecimalField(label=label, max_digits=9, decimal_places=2, widget=widget, **kwargs)


class MoneyForm(forms.Form):
    """`fields_of_services`: which field of the form the services mean by one of their inputs."""

    fields_of_services: ClassVar[dict[str, str]] = {}


class AmountForm(MoneyForm):
    """An amount in USD, and a key so that a form that is sent twice moves money once."""

    fields_of_services = {"amount_microusd": "usd"}

    usd = _usd("Amount in USD", min_value=Decimal("0.01"))
    key = forms.CharField(widget=forms.HiddenInput, max_length=80)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not self.is_bound:
            self.fields["key"].initial = str(uuid.uuid4())

    def clean(self) -> dict[str, Any]:
        if "key" in self.errors:  # which nobody sees
            self.add_error(None, "This form was not whole: open the page again, then send it once more.")
        return self.cleaned_data

    @property
    def amount_microusd(self) -> int:
        usd: Decimal = self.cleaned_data["usd"]
        return int(usd * MICROUSD_PER_USD)


class AutoTopUpForm(MoneyForm):
    """The terms of automatic top-ups; nothing is charged without the yes at the end."""

    fields_of_services = {
        "threshold_microusd": "threshold",
        "amount_microusd": "amount",
        "monthly_cap_microusd": "cap",
    }

    threshold = _usd("When the wallet has less than, in USD", min_value=0)
    amount = _usd("Add each time, in USD")
    cap = _usd("In one month at most, in USD", help_text="Months are those of UTC.")
    agreed = forms.BooleanField(
        label="Yes, charge my saved card automatically under these terms",
        error_messages={"required": "Tick this, or nothing is charged: it takes your clear yes."},
    )

    @property
    def terms(self) -> Terms:
        data = self.cleaned_data
        return Terms(*(int(data[name] * MICROUSD_PER_USD) for name in ("threshold", "amount", "cap")))


class CountryForm(forms.Form):
    country = forms.ChoiceField(
        choices=[("", "Choose"), *((country.code, country.name) for country in COUNTRIES.values())],
        help_text="Where your bank is. Payouts reach these countries; elsewhere your balance is kept for you.",
    )
