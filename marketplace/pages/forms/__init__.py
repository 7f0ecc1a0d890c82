"""Forms turn what was typed into what a service takes; what is allowed is decided by the service."""

from marketplace.pages.forms.datasets import DatasetForm
from marketplace.pages.forms.devices import (
    DeviceNameForm,
    PolicyForm,
    WindowFormSet,
    window_formset,
    windows_of,
)
from marketplace.pages.forms.jobs import JobForm
from marketplace.pages.forms.refusals import refuse, refuse_windows, sentence_of

__all__ = [
    "DatasetForm",
    "DeviceNameForm",
    "JobForm",
    "PolicyForm",
    "WindowFormSet",
    "refuse",
    "refuse_windows",
    "sentence_of",
    "window_formset",
    "windows_of",
]
