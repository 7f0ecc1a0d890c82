"""A buyer who also owns devices, and someone else, each with a browser.

A template that names a variable that does not exist fails its test.
"""

import pytest
from django.core.cache import cache
from django.template import Engine
from django.test import Client

from accounts.models import User
from tests.marketplace import cast


class _Loud(str):
    """Django puts this where a template names a variable that does not exist."""

    def __mod__(self, name: object) -> str:
        raise AssertionError(f"the template names {name}, which does not exist")


@pytest.fixture(autouse=True)
def _templates_name_only_what_exists(monkeypatch):
    monkeypatch.setattr(Engine.get_default(), "string_if_invalid", _Loud("%s"))


@pytest.fixture(autouse=True)
def _no_device_is_connected():
    cache.clear()


def browser_of(person: User) -> Client:
    client = Client(HTTP_ACCEPT="text/html")
    client.force_login(person)
    return client


@pytest.fixture
def ada(db) -> User:
    user = cast.buyer("ada")
    User.objects.filter(pk=user.pk).update(time_zone="Europe/Berlin")
    user.refresh_from_db()
    return user


@pytest.fixture
def browser(ada) -> Client:
    return browser_of(ada)


@pytest.fixture
def bob(db) -> User:
    return cast.buyer("bob", wallet_microusd=0)


@pytest.fixture
def bobs_browser(bob) -> Client:
    return browser_of(bob)
