"""What the pages share: who asks, and how a refusal is said."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.views.decorators.http import require_http_methods

from billing.errors import BillingError

T = TypeVar("T")


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
        messages.error(request, refusal.message)
        return None
    if done:
        messages.success(request, done)
    return result
