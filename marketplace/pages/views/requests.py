"""What the views share: who asks, typed."""

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, cast

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.views.decorators.http import require_http_methods

from accounts.models import User

P = ParamSpec("P")
PersonView = Callable[Concatenate[HttpRequest, User, P], HttpResponseBase]


def page(*methods: str) -> Callable[[PersonView[P]], Callable[Concatenate[HttpRequest, P], HttpResponseBase]]:
    """A view of someone who is logged in; it gets the person beside the request and answers `methods` only."""

    def decorate(view: PersonView[P]) -> Callable[Concatenate[HttpRequest, P], HttpResponseBase]:
        @wraps(view)
        def with_person(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            return view(request, cast(User, request.user), *args, **kwargs)

        guarded: Any = require_http_methods(methods)(login_required(with_person))
        return cast("Callable[Concatenate[HttpRequest, P], HttpResponseBase]", guarded)

    return decorate
