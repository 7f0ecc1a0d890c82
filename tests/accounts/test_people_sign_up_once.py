"""Sign-up: what is refused, and that an e-mail address is one person in any letter case."""

import pytest
from django.contrib.auth import authenticate
from django.db import IntegrityError, transaction

from accounts.errors import EmailTaken, InvalidEmail, UnknownTimeZone, WeakPassword
from accounts.models import DeviceNews, User
from accounts.services import user_set_time_zone, user_sign_up
from tests.accounts.conftest import PASSWORD

pytestmark = pytest.mark.django_db


def sign_up(email="cleo@example.org", password=PASSWORD, time_zone="Europe/Rome") -> User:
    return user_sign_up(email=email, password=password, time_zone=time_zone)


def test_a_new_person_can_log_in_with_any_letter_case():
    cleo = sign_up(email=" Cleo@Example.org ")
    assert cleo.email == "cleo@example.org"
    assert authenticate(username="CLEO@example.ORG", password=PASSWORD) == cleo


@pytest.mark.parametrize(
    ("given", "error", "field"),
    [
        ({"email": "cleo"}, InvalidEmail, "email"),
        ({"email": ""}, InvalidEmail, "email"),
        ({"email": f"c@{'a' * 60}.{'b' * 60}.{'c' * 60}.{'d' * 60}.{'e' * 20}.org"}, InvalidEmail, "email"),
        ({"password": "short"}, WeakPassword, "password"),
        ({"password": "1234567890123"}, WeakPassword, "password"),
        ({"password": "cleo@example.org"}, WeakPassword, "password"),
        ({"time_zone": "Europe/Atlantis"}, UnknownTimeZone, "time_zone"),
        ({"time_zone": "../../etc/passwd"}, UnknownTimeZone, "time_zone"),
    ],
)
def test_bad_input_makes_nobody(given, error, field):
    with pytest.raises(error) as refused:
        sign_up(**given)
    assert refused.value.field == field
    assert not User.objects.exists()


def test_an_address_in_other_letters_is_the_same_person(ada):
    with pytest.raises(EmailTaken):
        sign_up(email="ADA@EXAMPLE.ORG")
    assert User.objects.count() == 1


def test_the_database_keeps_addresses_in_lower_case(ada):
    with pytest.raises(IntegrityError, match="user_email_is_lower_case"), transaction.atomic():
        User.objects.filter(id=ada.id).update(email="Ada@example.org")


def test_a_superuser_is_made_by_address():
    root = User.objects.create_superuser("Root@Example.org", PASSWORD)
    assert (root.email, root.is_staff, root.is_superuser) == ("root@example.org", True, True)


def test_a_new_time_zone_is_news_of_every_device(ada, bob, pair):
    mine = {str(pair(ada, "one").id), str(pair(ada, "two").id)}
    pair(bob)
    DeviceNews.objects.all().delete()
    user_set_time_zone(user=ada, time_zone="Asia/Tokyo")
    ada.refresh_from_db()
    assert ada.time_zone == "Asia/Tokyo"
    assert {(n.kind, n.payload["device_id"]) for n in DeviceNews.objects.all()} == {
        ("changed", d) for d in mine
    }


def test_an_unknown_time_zone_changes_nothing(ada, phone):
    DeviceNews.objects.all().delete()
    with pytest.raises(UnknownTimeZone):
        user_set_time_zone(user=ada, time_zone="Mars/Olympus")
    ada.refresh_from_db()
    assert ada.time_zone == "Europe/Berlin"
    assert not DeviceNews.objects.exists()
