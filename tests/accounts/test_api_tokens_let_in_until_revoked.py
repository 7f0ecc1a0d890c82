"""API tokens: shown once, kept as a digest, limited to scopes, revocable."""

from collections.abc import Collection
from datetime import UTC, datetime, timedelta

import pytest
from django.forms import model_to_dict

from accounts.errors import (
    ApiTokenNotFound,
    ApiTokenRevoked,
    ApiTokenUnknown,
    InvalidName,
    LimitError,
    UnknownScope,
)
from accounts.models import ApiToken, User
from accounts.services import api_token_authenticate, api_token_create, api_token_revoke
from accounts.services.tokens import MAX_TOKENS

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)


def create(
    user: User, name: str = "laptop", scopes: Collection[str] = ("jobs:read",)
) -> tuple[ApiToken, str]:
    return api_token_create(user=user, name=name, scopes=scopes)


def test_a_token_lets_its_user_in(ada):
    token, plain = create(ada)
    assert api_token_authenticate(plain=plain) == token


def test_the_plain_token_is_long_random_and_stored_nowhere(ada):
    token, plain = create(ada)
    assert plain.startswith("ns_")
    assert len(plain) >= 3 + 32
    assert create(ada)[1] != plain
    stored = {**model_to_dict(token), "digest": token.digest, "hint": token.hint}
    assert plain not in str(stored)
    assert plain.startswith(token.hint)
    assert len(token.hint) < 12


@pytest.mark.parametrize("plain", ["", "ns_", "ns_" + "a" * 43, "täken\x00"])
def test_an_unknown_token_lets_nobody_in(ada, plain):
    with pytest.raises(ApiTokenUnknown):
        api_token_authenticate(plain=plain)


def test_a_revoked_token_says_so(ada):
    token, plain = create(ada)
    api_token_revoke(user=ada, token_id=token.id)
    with pytest.raises(ApiTokenRevoked, match="laptop"):
        api_token_authenticate(plain=plain)


def test_revoking_again_keeps_the_first_time(ada):
    token, _ = create(ada)
    api_token_revoke(user=ada, token_id=token.id, now=NOW)
    api_token_revoke(user=ada, token_id=token.id, now=NOW + timedelta(days=1))
    token.refresh_from_db()
    assert token.revoked_at == NOW


def test_a_token_of_someone_who_was_shut_out_lets_nobody_in(ada):
    _, plain = create(ada)
    ada.is_active = False
    ada.save()
    with pytest.raises(ApiTokenUnknown):
        api_token_authenticate(plain=plain)


def test_nobody_revokes_the_token_of_another(ada, bob):
    token, plain = create(ada)
    with pytest.raises(ApiTokenNotFound):
        api_token_revoke(user=bob, token_id=token.id)
    assert api_token_authenticate(plain=plain) == token


def test_last_use_is_noted_at_most_once_a_minute(ada, django_assert_num_queries):
    token, plain = create(ada)
    uses = [NOW, NOW + timedelta(seconds=59), NOW + timedelta(seconds=61)]
    noted = []
    for now, queries in zip(uses, (2, 1, 2), strict=True):
        with django_assert_num_queries(queries):
            api_token_authenticate(plain=plain, now=now)
        noted.append(ApiToken.objects.get(id=token.id).last_used_at)
    assert noted == [uses[0], uses[0], uses[2]]


@pytest.mark.parametrize("scopes", [(), ("jobs:everything",), ("jobs:read", "root")])
def test_scopes_must_be_known(ada, scopes):
    with pytest.raises(UnknownScope, match="jobs:read"):
        create(ada, scopes=scopes)
    assert not ApiToken.objects.exists()


def test_scopes_are_kept_once_and_in_order(ada):
    token, _ = create(ada, scopes=["money:read", "jobs:write", "money:read"])
    assert token.scopes == ["jobs:write", "money:read"]


@pytest.mark.parametrize("name", ["", "   ", "x" * 61, "two\nlines"])
def test_a_token_needs_a_readable_name(ada, name):
    with pytest.raises(InvalidName):
        create(ada, name=name)


def test_the_number_of_live_tokens_is_bounded(ada):
    tokens = [create(ada)[0] for _ in range(MAX_TOKENS)]
    with pytest.raises(LimitError):
        create(ada)
    api_token_revoke(user=ada, token_id=tokens[0].id)
    create(ada)
