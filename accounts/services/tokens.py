"""API tokens: made, used, revoked. The plain token leaves this module once, when it is made."""

import hashlib
import secrets
from collections.abc import Collection
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Q

from accounts.domain.scopes import SCOPES
from accounts.errors import ApiTokenNotFound, ApiTokenRevoked, ApiTokenUnknown, LimitError, UnknownScope
from accounts.models import ApiToken, User
from accounts.services.checks import checked_name
from common.clock import utc_now

PREFIX = "ns_"
RANDOM_BYTES = 32
HINT_LENGTH = 8
MAX_TOKENS = 50
# `last_used_at` is for people; a write on every request would be for nobody.
USE_NOTED_EVERY = timedelta(minutes=1)


@transaction.atomic
def api_token_create(*, user: User, name: str, scopes: Collection[str]) -> tuple[ApiToken, str]:
    """Make a token; the second value is the plain token, which can never be seen again."""
    name = checked_name(name)
    unknown = sorted(set(scopes) - set(SCOPES))
    if unknown or not scopes:
        problem = f"{', '.join(unknown)[:100]}: no such scope" if unknown else "No scope given"
        raise UnknownScope(f"{problem}; choose from {', '.join(SCOPES)}.", field="scopes")
    if user.api_tokens.filter(revoked_at=None).count() >= MAX_TOKENS:
        raise LimitError(f"You have {MAX_TOKENS} API tokens; revoke one that you no longer use.")
    plain = PREFIX + secrets.token_urlsafe(RANDOM_BYTES)
    token = ApiToken.objects.create(
        user=user,
        name=name,
        scopes=[scope for scope in SCOPES if scope in scopes],
        digest=_digest(plain),
        hint=plain[:HINT_LENGTH],
    )
    return token, plain


def api_token_revoke(*, user: User, token_id: int, now: datetime | None = None) -> None:
    """Make a token useless for good; revoking it again changes nothing. Raises ApiTokenNotFound."""
    tokens = ApiToken.objects.filter(user=user, id=token_id)
    revoked = tokens.filter(revoked_at=None).update(revoked_at=now or utc_now())
    if not revoked and not tokens.exists():
        raise ApiTokenNotFound("You have no such API token.")


def api_token_authenticate(*, plain: str, now: datetime | None = None) -> ApiToken:
    """The token with its user, its use noted. Raises ApiTokenUnknown or ApiTokenRevoked."""
    now = now or utc_now()
    token = ApiToken.objects.select_related("user").filter(digest=_digest(plain)).first()
    if token is None or not token.user.is_active:
        raise ApiTokenUnknown("This API token is not known; create one on the settings page.")
    if token.revoked_at is not None:
        raise ApiTokenRevoked(f"The API token {token.name!r} has been revoked; create a new one.")
    _note_use(token, now)
    return token


def _note_use(token: ApiToken, now: datetime) -> None:
    if token.last_used_at is not None and token.last_used_at > now - USE_NOTED_EVERY:
        return
    stale = Q(last_used_at=None) | Q(last_used_at__lte=now - USE_NOTED_EVERY)
    ApiToken.objects.filter(stale, id=token.id).update(last_used_at=now)
    token.last_used_at = now


def _digest(plain: str) -> str:
    """SHA-256 without salt or stretching is enough for 256 random bits, and can be looked up."""
    return hashlib.sha256(plain.encode()).hexdigest()
