"""A service's typed refusal, shown where the person can mend it."""

from collections.abc import Mapping
from typing import Any

from django.forms import BaseForm
from django.forms.formsets import BaseFormSet

from common.errors import NightshiftError
from common.http import status_of


def refuse(form: BaseForm, error: NightshiftError, *, field_names: Mapping[str, str] | None = None) -> int:
    """Put `error` beside the form's field that is at fault, or on top; returns the HTTP status for the page.

    `field_names` maps a service's field names to the form's, where they differ. What no form can mend (there is no
    such object, our own failure) is raised on and becomes a page of its own.
    """
    status = _mendable(error)
    named = (error.field or "").partition("[")[0]  # a place in a list is one field of the form
    field = (field_names or {}).get(named, named)
    form.add_error(field if field in form.fields else None, sentence_of(error))
    return status


def sentence_of(error: NightshiftError) -> str:
    """The error's sentence without the name of the field, where that stands beside it anyway."""
    prefix = f"{error.field}: "
    if error.field is None or not error.message.startswith(prefix):
        return error.message
    sentence = error.message.removeprefix(prefix)
    return sentence[:1].upper() + sentence[1:]


def refuse_windows(formset: BaseFormSet[Any], error: NightshiftError) -> int:
    """The same for rows of windows, where what is wrong is seldom in one row alone."""
    status = _mendable(error)
    formset.non_form_errors().append(sentence_of(error))
    return status


def _mendable(error: NightshiftError) -> int:
    status = status_of(error)
    if status == 404 or status >= 500:
        raise error
    return status
