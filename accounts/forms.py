"""The forms of people's own pages. They parse and show; the services decide."""

from datetime import timedelta
from typing import Any
from zoneinfo import available_timezones

from django import forms
from django.contrib.auth.forms import AuthenticationForm

from accounts.attempts import AttemptLimit
from accounts.domain.scopes import SCOPES
from accounts.requests import client_address
from accounts.services.checks import NAME_MAX_LENGTH

# Counted by e-mail address and client together, so that nobody can lock another person out.
WRONG_PASSWORDS = AttemptLimit("log-in", attempts=10, per=timedelta(minutes=10))
REGIONS = (
    "Africa", "America", "Antarctica", "Arctic", "Asia", "Atlantic", "Australia", "Europe", "Indian", "Pacific"
)  # fmt: skip


def time_zone_choices() -> list[tuple[str, Any]]:
    """UTC and the zones that are named after places, by region."""
    regions = [
        (region, [(zone, zone.replace("_", " ")) for zone in zones])
        for region in REGIONS
        if (zones := sorted(z for z in available_timezones() if z.startswith(f"{region}/")))
    ]
    return [("UTC", "UTC"), *regions]


class TimeZoneForm(forms.Form):
    time_zone = forms.CharField(
        widget=forms.Select(choices=time_zone_choices()),
        help_text="Your devices' idle windows follow this clock, summer time included.",
    )


class InvoiceAddressForm(forms.Form):
    invoice_address = forms.CharField(
        label="Name and address on invoices",
        required=False,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 4, "autocomplete": "billing street-address"}),
        help_text="Up to 8 lines, a tax number among them if you have one. Empty: your e-mail address. "
        "Invoices that are issued stay as they are.",
    )


class SignUpForm(TimeZoneForm):
    email = forms.EmailField(
        label="E-mail address", widget=forms.EmailInput(attrs={"autocomplete": "username", "autofocus": True})
    )
    password = forms.CharField(
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        help_text="At least 10 characters. A few words in a row are easy to remember and hard to guess.",
    )
    field_order = ["email", "password", "time_zone"]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not self.is_bound:  # static/time-zone.js picks the browser's; a choice once made stays
            self.fields["time_zone"].widget.attrs["data-browser-time-zone"] = True


class LogInForm(AuthenticationForm):
    """Django's form with a bound on wrong passwords."""

    username = forms.EmailField(
        label="E-mail address", widget=forms.EmailInput(attrs={"autocomplete": "username", "autofocus": True})
    )

    def clean(self) -> dict[str, Any]:
        assert self.request is not None  # noqa: S101 - the log-in view always gives it
        key = f"{client_address(self.request)} {self.cleaned_data.get('username', '').lower()}"
        if not WRONG_PASSWORDS.take(key):
            raise forms.ValidationError(
                f"Too many wrong passwords; wait {WRONG_PASSWORDS.minutes} minutes, or reset the password.",
                code="too_many_attempts",
            )
        cleaned = super().clean()
        WRONG_PASSWORDS.give_back(key)
        return cleaned


class ApiTokenForm(forms.Form):
    name = forms.CharField(
        max_length=NAME_MAX_LENGTH, help_text="Where you will use it, so that you know it again later."
    )
    scopes = forms.MultipleChoiceField(
        label="It may",
        choices=[(scope, f"{scope}: {words}") for scope, words in SCOPES.items()],
        widget=forms.CheckboxSelectMultiple,
        error_messages={"required": "Tick at least one thing that the token may do."},
    )
