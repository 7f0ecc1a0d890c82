"""An owner's forms: a device's name, its policy, and weekly idle windows.

In the windows form one row stands for the same times on several days, as people think of them ('weekdays, 22:00 to
07:00'); the services take one window for each day.
"""

from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from django import forms
from django.forms.formsets import BaseFormSet, formset_factory

from accounts.domain.policy import BATTERY_MARGIN_PERCENT, HEAT_MARGIN_CELSIUS
from accounts.domain.windows import WEEKDAYS, Window
from accounts.models import Device
from marketplace.pages.window_rows import window_rows

MAX_WINDOW_ROWS = 50


class DeviceNameForm(forms.Form):
    name = forms.CharField(max_length=60, widget=forms.TextInput(attrs={"autocomplete": "off"}))


class PolicyForm(forms.Form):
    """What `accounts.services.device_set_policy` takes."""

    charging_only = forms.BooleanField(required=False, label="Only while charging")
    wifi_only = forms.BooleanField(required=False, label="Only on Wi-Fi")
    battery_floor_percent = forms.IntegerField(
        label="Battery floor, %",
        help_text=f"Stops below this charge; goes on {BATTERY_MARGIN_PERCENT} % above it.",
    )
    too_hot_celsius = forms.IntegerField(
        label="Too hot at, °C",
        help_text=f"Stops at this temperature; goes on {HEAT_MARGIN_CELSIUS} °C below it.",
    )

    @classmethod
    def of(cls, device: Device) -> "PolicyForm":
        return cls(initial={name: getattr(device, name) for name in cls.base_fields})


class WindowRowForm(forms.Form):
    """The same times on the ticked days; a row without a day is no window."""

    days = forms.TypedMultipleChoiceField(
        choices=[(number, name[:3]) for number, name in enumerate(WEEKDAYS)],
        coerce=int,
        required=False,
        widget=forms.CheckboxSelectMultiple,
    )
    starts = forms.TimeField(required=False, label="From", widget=forms.TimeInput({"type": "time"}, "%H:%M"))
    ends = forms.TimeField(required=False, label="To", widget=forms.TimeInput({"type": "time"}, "%H:%M"))

    def clean(self) -> dict[str, Any]:
        for name in ("starts", "ends"):
            if (
                self.cleaned_data.get("days")
                and self.cleaned_data.get(name) is None
                and name not in self.errors
            ):
                self.add_error(name, "Give a time such as 22:00.")
        return self.cleaned_data

    def windows(self) -> list[Window]:
        starts, ends = self.cleaned_data.get("starts"), self.cleaned_data.get("ends")
        if starts is None or ends is None:
            return []
        return [Window(day, starts, ends) for day in self.cleaned_data["days"]]


if TYPE_CHECKING:
    WindowFormSet = BaseFormSet[WindowRowForm]
else:
    WindowFormSet = formset_factory(
        WindowRowForm, extra=1, max_num=MAX_WINDOW_ROWS, absolute_max=MAX_WINDOW_ROWS
    )


def window_formset(windows: Iterable[Window]) -> WindowFormSet:
    """A form of the windows in force, with an empty row for one more."""
    return WindowFormSet(prefix="windows", initial=[asdict(row) for row in window_rows(windows)])


def windows_of(formset: WindowFormSet) -> list[Window]:
    """The windows of a valid form. A window that two rows name is kept twice, for the service to refuse."""
    return [window for row in formset.forms for window in row.windows()]
