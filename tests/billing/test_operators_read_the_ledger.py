"""The admin site shows the ledger to operators, and changes nothing of it."""

from typing import Any

import pytest
from django.db.models import QuerySet
from django.urls import reverse

from accounts.models import User
from billing.models import Account, Hold, Transfer
from billing.services import hold_open
from tests.billing.cast import USD, buyer

pytestmark = pytest.mark.django_db
ROWS: dict[str, QuerySet[Any]] = {
    "account": Account.objects.order_by("pk"),
    "transfer": Transfer.objects.order_by("pk"),
    "hold": Hold.objects.order_by("pk"),
}


@pytest.fixture
def operator_client(client):
    hold_open(user=buyer(wallet_microusd=10 * USD), reference="job:1", amount_microusd=4 * USD)
    client.force_login(User.objects.create_superuser("olga@example.org", "a long enough password"))
    return client


@pytest.mark.parametrize(
    ("name", "shown"), [("account", "$6.00"), ("transfer", "first grant to bea"), ("hold", "$4.00")]
)
def test_a_list_and_its_pages_are_shown(operator_client, name, shown):
    assert shown in operator_client.get(reverse(f"admin:billing_{name}_changelist")).content.decode()
    row = ROWS[name].all()[0]
    assert operator_client.get(reverse(f"admin:billing_{name}_change", args=[row.pk])).status_code == 200


@pytest.mark.parametrize("name", ROWS)
def test_nothing_is_added_changed_or_deleted(operator_client, name):
    row = ROWS[name].all()[0]
    before = list(ROWS[name].values())
    addresses = [
        reverse(f"admin:billing_{name}_add"),
        reverse(f"admin:billing_{name}_change", args=[row.pk]),
        reverse(f"admin:billing_{name}_delete", args=[row.pk]),
    ]
    assert [operator_client.post(address, {"post": "yes"}).status_code for address in addresses] == [403] * 3
    assert list(ROWS[name].values()) == before
