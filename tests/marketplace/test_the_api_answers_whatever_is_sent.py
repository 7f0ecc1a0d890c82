"""Whatever a client asks or sends, the API answers with its usual body."""

import json
from typing import Any
from uuid import uuid4

import pytest
from rest_framework.test import APIClient

from tests.marketplace.cast import buyer

pytestmark = pytest.mark.django_db

SURROGATE = chr(0xD800)  # half a character, which JSON can spell and no database can store


@pytest.fixture
def client() -> APIClient:
    client = APIClient()
    client.force_login(buyer())
    return client


