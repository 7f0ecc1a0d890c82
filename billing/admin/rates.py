"""Prices in the admin site: every row that ever was, and a form that sets one for now or later."""

from datetime import datetime
from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.admin.widgets import AdminSplitDateTime
from django.http import HttpRequest

from accounts.requests import person
from billing.domain.rates import fee_check, rate_check, start_check
from billing.models import Fee, Rate
from billing.services import fee_set, rate_set, reason_checked
from common.clock import utc_now
from common.errors import NightshiftError


class _PriceForm(forms.ModelForm[Any]):
    """Says beside the form what the service would refuse."""

    valid_from = forms.SplitDateTimeField(
        required=False, widget=AdminSplitDateTime(), help_text="UTC; empty: from now on"
    )
    reason = forms.CharField(max_length=200, help_text="why; it is written in the audit log")

    def clean(self) -> dict[str, Any]:
        given = super().clean() or {}
        try:
            self.check(given)
            if given.get("valid_from"):
                start_check(given["valid_from"], now=utc_now())
            reason_checked(given.get("reason", ""))
        except NightshiftError as error:
            raise forms.ValidationError(error.message) from error
        except KeyError:  # a field that has its own complaint
            pass
        return given

    def check(self, given: dict[str, Any]) -> None:
        raise NotImplementedError


class RateForm(_PriceForm):
    class Meta:
        model = Rate
        fields = ("device_class", "microusd_per_gpu_second", "valid_from", "reason")

    def check(self, given: dict[str, Any]) -> None:
        rate_check(
            device_class=given["device_class"], microusd_per_gpu_second=given["microusd_per_gpu_second"]
        )


class FeeForm(_PriceForm):
    class Meta:
        model = Fee
        fields = ("basis_points", "valid_from", "reason")

    def check(self, given: dict[str, Any]) -> None:
        fee_check(given["basis_points"])


class _PriceAdmin:
    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        given: dict[str, Any] = dict(form.cleaned_data)
        start: datetime | None = given.pop("valid_from")
        setter: Any = rate_set if isinstance(obj, Rate) else fee_set
        made = setter(**given, valid_from=start, operator=person(request), now=utc_now())
        obj.pk, obj.valid_from = made.pk, made.valid_from


@admin.register(Rate)
class RateAdmin(_PriceAdmin, admin.ModelAdmin[Rate]):
    form = RateForm
    list_display = ["device_class", "microusd_per_gpu_second", "valid_from", "operator", "reason"]
    list_filter = ["device_class"]
    list_select_related = ["operator"]


@admin.register(Fee)
class FeeAdmin(_PriceAdmin, admin.ModelAdmin[Fee]):
    form = FeeForm
    list_display = ["basis_points", "valid_from", "operator", "reason"]
    list_select_related = ["operator"]
