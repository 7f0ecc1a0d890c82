import pytest
from django.test import Client

from accounts.models import User
from accounts.views import SIGN_UPS
from tests.accounts.conftest import PASSWORD

pytestmark = pytest.mark.django_db


def sign_up(email: str, address: str = "192.0.2.1", password: str = PASSWORD):
    form = {"email": email, "password": password, "time_zone": "UTC"}
    return Client(REMOTE_ADDR=address).post("/sign-up/", form)


def test_the_next_one_is_told_to_wait_and_other_addresses_are_not():
    for number in range(SIGN_UPS.attempts):
        assert sign_up(f"one{number}@example.org").status_code == 302
    refused = sign_up("late@example.org")
    assert refused.status_code == 429
    assert "Too many people have signed up from your address" in refused.content.decode()
    assert not User.objects.filter(email="late@example.org").exists()
    assert sign_up("late@example.org", "192.0.2.2").status_code == 302


def test_attempts_that_fail_do_not_count():
    for _ in range(SIGN_UPS.attempts + 1):
        assert sign_up("one@example.org", password="short").status_code == 400
    assert sign_up("one@example.org").status_code == 302
