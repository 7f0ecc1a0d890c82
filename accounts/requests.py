"""What a request says of who makes it."""

from typing import cast

from django.http import HttpRequest
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from accounts.models import User


def person(request: HttpRequest | Request) -> User:
    """The user of a request that log-in or a permission has already let through."""
    if not isinstance(request.user, User):
        raise TypeError("this view must require log-in")
    return request.user


def client_address(request: HttpRequest | Request) -> str:
    """The address of the client. DRF's `NUM_PROXIES` says how much of X-Forwarded-For is ours to believe."""
    return str(BaseThrottle().get_ident(cast(Request, request)))  # it reads nothing that HttpRequest lacks
