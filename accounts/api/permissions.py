"""Who may call a view: a token's scopes, and what only a person may do."""

from typing import Any

from django.core.exceptions import ImproperlyConfigured
from rest_framework.exceptions import PermissionDenied
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request

from accounts.domain.scopes import SCOPES
from accounts.models import ApiToken


class HasScope(BasePermission):
    """Signed in; and a token, if that is how, has the scope that the view's `required_scopes` asks for.

    `required_scopes` is one scope for reading and one for changing: `("jobs:read", "jobs:write")`. With one scope
    alone, that one is asked for either way. People in a session have every scope.
    """

    def has_permission(self, request: Request, view: Any) -> bool:
        if not request.user.is_authenticated:
            return False
        scope = _scope_for(request, view)
        if isinstance(request.auth, ApiToken) and scope not in request.auth.scopes:
            raise PermissionDenied(f"This API token lacks the scope {scope}.", code="scope_missing")
        return True


class IsPerson(BasePermission):
    """Signed in in a session. A token must not make tokens, or it would outlive its own revocation."""

    message = "API tokens may not do this; use the settings page."
    code = "person_required"

    def has_permission(self, request: Request, view: Any) -> bool:
        return request.user.is_authenticated and not isinstance(request.auth, ApiToken)


def _scope_for(request: Request, view: Any) -> str:
    scopes: tuple[str, ...] = tuple(getattr(view, "required_scopes", ()))
    if not scopes or not set(scopes) <= set(SCOPES):
        raise ImproperlyConfigured(
            f"{type(view).__name__}.required_scopes must name one or two of the scopes."
        )
    return scopes[0] if request.method in SAFE_METHODS else scopes[-1]
