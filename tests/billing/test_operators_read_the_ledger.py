"""The admin site shows the ledger to operators, and changes nothing of it."""

from typing import Any

import pytest
from django.apps import apps
from django.db.models import QuerySet
from django.urls import reverse

from accounts.models import User
from billing.models import Account, Hold, Transfer, Unmatched
from billing.services import adjustment_create, hold_open, payout_request, refund_create, top_up_create
from common.clock import utc_now
from tests.billing.cast import USD, buyer, operator, person
from tests.billing.owners import earner, ready

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
    ("name", "shown"), [("account", "$6.00"), ("transfer", "source:grants"), ("hold", "$4.00")]
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


@pytest.fixture
def real_money(stripe, client, operator_client) -> None:
    """One of everything that moves, with an odd amount, which would be seen if it were shown as it is stored."""
    top_up = top_up_create(user=person("bo"), amount_microusd=23_450_000, idempotency_key="k")
    stripe.world.pay(top_up.session_id)
    stripe.deliver(client)
    refund_create(user=top_up.user, top_up_id=top_up.pk, amount_microusd=1_230_000, idempotency_key="r")
    stripe.world.dispute(stripe.world.of("payment_intent")[0]["id"])
    stripe.deliver(client)
    otto = ready(stripe, earner())
    payout_request(user=otto, amount_microusd=45_670_000, idempotency_key="k")
    adjustment_create(
        operator=operator(),
        from_key="source:grants",
        to_key=f"wallet:{otto.pk}",
        amount_microusd=7_654_321,
        reason="lost.",
    )
    Unmatched.objects.create(
        kind="charge",
        stripe_id="txn",
        stripe_microusd=9_870_000,
        moved_at=utc_now(),
        found_at=utc_now(),
        seen_at=utc_now(),
    )


@pytest.mark.parametrize("name", ["payout", "refund", "stripeevent", "topup"])
def test_what_was_given_up_is_said_and_can_be_listed_alone(real_money, operator_client, name):
    model = apps.get_model("billing", name)
    rows = model._default_manager.all()
    states: dict[str, dict[str, Any]] = {
        "payout": {"state": "debited"},
        "refund": {"state": "debited"},
        "stripeevent": {"state": "failed"},
        "topup": {"state": "created", "automatic": True},
    }
    path = reverse(f"admin:billing_{name}_changelist")
    assert operator_client.get(path, {"waits": "yes"}).context["cl"].result_count == 0
    rows.filter(pk=rows[0].pk).update(**states[name], next_try_at=None, tries=12)
    page = operator_client.get(path, {"waits": "yes"})
    assert [row.pk for row in page.context["cl"].result_list] == [rows[0].pk]
    assert "given up after 12 tries" in page.content.decode()


AMOUNTS = [
    ("topup", "$23.45"),
    ("refund", "$1.23"),
    ("dispute", "$23.45"),
    ("payout", "$45.67"),
    ("transfer", "$7.654321"),
    ("account", "$7.654321"),
    ("adjustment", "$7.654321"),
    ("operatoraction", "$7.654321"),
    ("unmatched", "$9.87"),
    ("hold", "$4.00"),
]


@pytest.mark.parametrize(("name", "shown"), AMOUNTS)
def test_amounts_are_in_usd_in_lists_and_on_rows(real_money, operator_client, name, shown):
    page = operator_client.get(reverse(f"admin:billing_{name}_changelist")).content.decode()
    assert shown in page
    model = apps.get_model("billing", name)
    rows = [
        operator_client.get(reverse(f"admin:billing_{name}_change", args=[row.pk])).content.decode()
        for row in model._default_manager.all()
    ]
    assert any(shown in row for row in rows)
    raw = shown.replace("$", "").replace(".", "").lstrip("-0").ljust(7, "0")
    assert raw not in page + "".join(rows)
