"""The cast of the accounts' tests: Ada owns devices and posts jobs, Bob is somebody else."""

from collections.abc import Callable

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.core.cache import cache

from accounts.models import Device, User
from accounts.services import device_pair, pairing_code_create, user_sign_up

PASSWORD = "correct horse battery"


@pytest.fixture(autouse=True)
def _own_addresses(settings):
    """These tests serve the accounts' own addresses, with stand-ins for the pages above them."""
    settings.ROOT_URLCONF = "tests.accounts.urls"


@pytest.fixture(autouse=True)
def _empty_cache():
    cache.clear()


@pytest.fixture
def ada(db) -> User:
    return user_sign_up(email="ada@example.org", password=PASSWORD, time_zone="Europe/Berlin")


@pytest.fixture
def bob(db) -> User:
    return user_sign_up(email="bob@example.org", password=PASSWORD, time_zone="America/New_York")


def new_public_key() -> bytes:
    return Ed25519PrivateKey.generate().public_key().public_bytes_raw()


@pytest.fixture
def pair() -> Callable[..., Device]:
    """Pairs a new device of the given owner, as a phone would."""

    def pair_device(owner: User, name: str = "Pixel") -> Device:
        _, code = pairing_code_create(owner=owner)
        return device_pair(
            code=code, public_key=new_public_key(), name=name, kind="phone", device_class="phone-high"
        )

    return pair_device


@pytest.fixture
def phone(ada: User, pair: Callable[..., Device]) -> Device:
    return pair(ada)
