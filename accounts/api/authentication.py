"""Bearer tokens for the REST API: `Authorization: Bearer ns_...`."""

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from accounts.errors import ApiTokenError
from accounts.models import ApiToken, User
from accounts.services import api_token_authenticate

SCHEME = "Bearer"


class TokenAuthentication(BaseAuthentication):
    """Lets a request in as the token's user, with the token as `request.auth`."""

    def authenticate(self, request: Request) -> tuple[User, ApiToken] | None:
        scheme, _, plain = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != SCHEME.lower():
            return None
        try:
            token = api_token_authenticate(plain=plain.strip())
        except ApiTokenError as error:
            # As DRF's own error, so that the answer says which scheme is asked for (WWW-Authenticate).
            raise AuthenticationFailed(error.message, code=error.code) from None
        return token.user, token

    def authenticate_header(self, request: Request) -> str:
        return f'{SCHEME} realm="nightshift"'


class TokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """How the API's description names these tokens."""

    target_class = TokenAuthentication
    name = "apiToken"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {"type": "http", "scheme": "bearer", "description": "An API token from the settings page."}
