"""The settings page: time zone, password, and API tokens that are shown once."""

import pytest

from accounts.models import ApiToken
from accounts.services import api_token_authenticate, api_token_create
from tests.accounts.conftest import PASSWORD


@pytest.fixture
def settings_of_ada(client, ada):
    client.force_login(ada)
    return client


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("get", "/settings/"),
        ("post", "/settings/time-zone/"),
        ("post", "/settings/tokens/"),
        ("post", "/settings/tokens/1/revoke/"),
        ("get", "/password/change/"),
    ],
)
def test_settings_are_for_people_who_are_logged_in(client, db, method, path):
    answer = getattr(client, method)(path)
    assert answer.status_code == 302
    assert answer["Location"].startswith("/log-in/?next=")


def test_the_time_zone_is_shown_and_saved(settings_of_ada, ada):
    assert '<option value="Europe/Berlin" selected>' in settings_of_ada.get("/settings/").text
    saved = settings_of_ada.post("/settings/time-zone/", {"time_zone": "Asia/Tokyo"}, follow=True)
    assert "time zone is saved" in saved.text
    ada.refresh_from_db()
    assert ada.time_zone == "Asia/Tokyo"


def test_an_unknown_time_zone_is_refused_on_the_page(settings_of_ada, ada):
    refused = settings_of_ada.post("/settings/time-zone/", {"time_zone": "Mars/Olympus"})
    assert refused.status_code == 400
    assert "is not a time zone" in refused.text
    ada.refresh_from_db()
    assert ada.time_zone == "Europe/Berlin"


def test_a_new_token_is_shown_once_and_kept_out_of_caches(settings_of_ada):
    made = settings_of_ada.post(
        "/settings/tokens/", {"name": "laptop", "scopes": ["jobs:read", "money:read"]}
    )
    plain = made.context["plain"]
    assert plain in made.text
    assert "no-store" in made["Cache-Control"]
    assert api_token_authenticate(plain=plain).scopes == ["jobs:read", "money:read"]
    listed = settings_of_ada.get("/settings/").text
    assert "laptop" in listed
    assert plain not in listed


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"name": "laptop"}, "Tick at least one"),
        ({"name": "", "scopes": ["jobs:read"]}, "required"),
        ({"name": "laptop", "scopes": ["root"]}, "not one of the available choices"),
    ],
)
def test_a_refused_token_says_why(settings_of_ada, given, sentence):
    refused = settings_of_ada.post("/settings/tokens/", given)
    assert refused.status_code == 400
    assert sentence in refused.text
    assert not ApiToken.objects.exists()


def test_a_token_is_revoked_with_a_button(settings_of_ada, ada):
    token, _ = api_token_create(user=ada, name="lost phone", scopes=["jobs:read"])
    after = settings_of_ada.post(f"/settings/tokens/{token.id}/revoke/", follow=True)
    assert "is revoked" in after.text
    assert "lost phone" not in after.text


def test_the_token_of_another_is_not_found(settings_of_ada, bob):
    token, _ = api_token_create(user=bob, name="his", scopes=["jobs:read"])
    refused = settings_of_ada.post(f"/settings/tokens/{token.id}/revoke/", headers={"Accept": "text/html"})
    assert refused.status_code == 404
    assert "You have no such API token." in refused.text
    token.refresh_from_db()
    assert token.revoked_at is None


def test_names_are_shown_as_text_and_never_as_markup(settings_of_ada, ada):
    api_token_create(user=ada, name="<script>alert(1)</script>", scopes=["jobs:read"])
    page = settings_of_ada.get("/settings/").text
    assert "<script>" not in page
    assert "&lt;script&gt;" in page


def test_a_changed_password_keeps_this_session(settings_of_ada, ada):
    new = "a whole new password"
    given = {"old_password": PASSWORD, "new_password1": new, "new_password2": new}
    after = settings_of_ada.post("/password/change/", given, follow=True)
    assert "Your password is changed." in after.text
    ada.refresh_from_db()
    assert ada.check_password(new)
