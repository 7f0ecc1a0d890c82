"""API tokens over REST: made and revoked in a session, used as a bearer, refused with a code."""

import pytest
from rest_framework.test import APIClient

from accounts.models import ApiToken
from accounts.services import api_token_create, api_token_revoke


@pytest.fixture
def client(ada) -> APIClient:
    """Ada, in a session."""
    client = APIClient()
    client.force_login(ada)
    return client


def with_token(plain: str) -> APIClient:
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {plain}")
    return client


def test_a_person_makes_lists_and_revokes_tokens(client):
    made = client.post("/api/tokens/", {"name": "laptop", "scopes": ["devices:read"]})
    assert made.status_code == 201
    assert made["Cache-Control"] == "no-store"
    plain = made.json()["token"]
    assert with_token(plain).get("/api/devices/").status_code == 200

    listed = client.get("/api/tokens/").json()
    assert [t["name"] for t in listed] == ["laptop"]
    assert plain not in str(listed)
    assert listed[0]["last_used_at"] is not None

    assert client.delete(f"/api/tokens/{made.json()['id']}/").status_code == 204
    assert client.get("/api/tokens/").json() == []


@pytest.mark.parametrize(
    ("body", "code", "field"),
    [
        ({"name": "", "scopes": ["jobs:read"]}, "invalid_input", "name"),
        ({"name": "x", "scopes": ["root"]}, "unknown_scope", "scopes"),
        ({"name": "x", "scopes": []}, "unknown_scope", "scopes"),
        ({"name": "x"}, "invalid_input", "scopes"),
    ],
)
def test_a_bad_token_request_makes_none(client, body, code, field):
    refused = client.post("/api/tokens/", body)
    assert refused.status_code == 400
    assert (refused.json()["code"], refused.json()["field"]) == (code, field)
    assert not ApiToken.objects.exists()


def test_a_token_makes_and_sees_no_tokens(ada):
    _, plain = api_token_create(user=ada, name="laptop", scopes=["devices:write"])
    bearer = with_token(plain)
    for refused in (
        bearer.get("/api/tokens/"),
        bearer.post("/api/tokens/", {"name": "more", "scopes": ["jobs:write"]}),
    ):
        assert refused.status_code == 403
        assert refused.json()["code"] == "person_required"
    assert ApiToken.objects.count() == 1


def test_the_token_of_another_is_not_found(client, bob):
    token, _ = api_token_create(user=bob, name="his", scopes=["jobs:read"])
    for token_id in (token.id, 10**30):
        refused = client.delete(f"/api/tokens/{token_id}/")
        assert (refused.status_code, refused.json()["code"]) == (404, "api_token_not_found")
    token.refresh_from_db()
    assert token.revoked_at is None


def test_refused_tokens_say_why(ada):
    token, plain = api_token_create(user=ada, name="laptop", scopes=["devices:read"])
    api_token_revoke(user=ada, token_id=token.id)
    for given, code in (
        (plain, "api_token_revoked"),
        ("ns_guess", "api_token_unknown"),
        ("", "api_token_unknown"),
    ):
        refused = with_token(given).get("/api/devices/")
        assert refused.status_code == 401
        assert refused.json()["code"] == code
        assert refused["WWW-Authenticate"].startswith("Bearer")


def test_a_session_needs_its_csrf_token(ada):
    browser = APIClient(enforce_csrf_checks=True)
    browser.force_login(ada)
    refused = browser.post("/api/tokens/", {"name": "x", "scopes": ["jobs:read"]})
    assert refused.status_code == 403
    assert not ApiToken.objects.exists()
