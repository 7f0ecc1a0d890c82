"""The admin site: people, devices and tokens, with actions that go through the services."""

from typing import Any

import pytest
from django.contrib import admin
from django.db.models import Model
from django.test import Client
from django.urls import include, path

from accounts.models import ApiToken, Device, DeviceNews, User
from accounts.services import api_token_create, device_remove
from tests.accounts.conftest import PASSWORD

urlpatterns = [path("admin/", admin.site.urls), path("", include("tests.accounts.urls"))]


@pytest.fixture
def operator(client, settings, db):
    settings.ROOT_URLCONF = __name__
    client.force_login(User.objects.create_superuser("root@example.org", PASSWORD))
    return client


def run_action(operator: Client, model: str, action: str, *rows: Model) -> Any:
    address = f"/admin/accounts/{model}/"
    return operator.post(address, {"action": action, "_selected_action": [row.pk for row in rows]})


def test_lists_and_rows_show_no_digest_key_or_password(operator, ada, phone):
    token, plain = api_token_create(user=ada, name="laptop", scopes=["jobs:read"])
    secrets = [plain, token.digest, bytes(phone.public_key).hex(), ada.password.rpartition("$")[2]]
    for address in ("user", f"user/{ada.id}/change", "device", f"device/{phone.id}/change", "apitoken"):
        page = operator.get(f"/admin/accounts/{address}/")
        assert page.status_code == 200
        assert not any(secret in page.text for secret in secrets)
    assert "laptop" in operator.get(f"/admin/accounts/apitoken/{token.id}/change/").text


def test_an_operator_adds_a_person(operator):
    given = {"email": "Cleo@Example.org", "time_zone": "UTC"}
    answer = operator.post(
        "/admin/accounts/user/add/", {**given, "password1": PASSWORD, "password2": PASSWORD}
    )
    assert answer.status_code == 302
    assert User.objects.get(email="cleo@example.org").check_password(PASSWORD)


def test_pausing_and_removing_is_news_for_the_scheduler(operator, ada, phone):
    DeviceNews.objects.all().delete()
    for action in ("pause", "resume", "remove", "remove"):
        assert run_action(operator, "device", action, phone).status_code == 302
    assert [n.kind for n in DeviceNews.objects.all()] == ["changed", "changed", "removed"]
    assert Device.objects.get().state == "removed"


def test_an_operator_revokes_tokens(operator, ada):
    token, _ = api_token_create(user=ada, name="laptop", scopes=["jobs:read"])
    run_action(operator, "apitoken", "revoke", token)
    assert ApiToken.objects.get().revoked_at is not None


def test_nothing_is_edited_or_deleted_by_hand(operator, ada, phone):
    operator.post(f"/admin/accounts/device/{phone.id}/change/", {"state": "removed", "name": "x"})
    phone.refresh_from_db()
    assert (phone.state, phone.name) == ("active", "Pixel")
    assert operator.post(f"/admin/accounts/device/{phone.id}/delete/", {"post": "yes"}).status_code == 403
    assert operator.post(f"/admin/accounts/user/{ada.id}/delete/", {"post": "yes"}).status_code == 403


def test_removed_devices_stay_visible(operator, ada, phone):
    device_remove(owner=ada, device_id=phone.id)
    assert "Pixel" in operator.get("/admin/accounts/device/").text
