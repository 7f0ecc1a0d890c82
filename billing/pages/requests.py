"""What the pages share: who asks, and how a refusal is said."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.views.decorators.http import require_http_methods

from billing.errors import BillingError
from billing.pages.forms import MoneyForm
from common.http import status_of

T = TypeVar("T")
# What the services call their inputs, and the forms' words for the same.
_LABELS = {
    "monthly_cap_microusd": "the most in one month",
    "threshold_microusd": "the least in the wallet",
    "amount_microusd": "the amount",
}


def page(*methods: str) -> Callable[[Callable[..., HttpResponseBase]], Callable[..., HttpResponseBase]]:
    """A view for someone who is logged in, which answers `methods` only."""

    def decorate(view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
        @wraps(view)
        def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            return view(request, *args, **kwargs)

        allowed: Callable[..., HttpResponseBase] = require_http_methods(methods)(login_required(guarded))
        return allowed

    return decorate


def said(request: HttpRequest, act: Callable[[], T], *, done: str = "") -> T | None:
    """Do it and say `done`; if billing refuses, say why and return None."""
    try:
        result = act()
    except BillingError as refusal:
        messages.error(request, _for_people(refusal.message))
        return None
    if done:
        messages.success(request, done)
    return result


def tried(form: MoneyForm, act: Callable[[], T]) -> tuple[T | None, int]:
    """Do what a form asks for: what came of it, and the page's status. A refusal is said beside its field."""
    if not form.is_valid():
        return None, 400
    try:
        return act(), 200
    except BillingError as refusal:
        field = form.fields_of_services.get(refusal.field or "")
        form.add_error(field, _for_people(refusal.message))
        return None, status_of(refusal)


def said_invalid(request: HttpRequest, form: forms.Form) -> None:
    """Say what is the matter with a form that is not valid: one sentence that names the field."""
    for field in form.visible_fields():
        if field.errors:
            messages.error(request, f"{field.label}: {field.errors[0]}")
            return
    messages.error(request, str(form.non_field_errors()[0]))


def _for_people(message: str) -> str:
    for name, label in _LABELS.items():
        message = message.replace(name, label)
    return f"{message[:1].upper()}{message[1:]}"
