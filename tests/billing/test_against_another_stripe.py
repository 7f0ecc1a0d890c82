"""Automatic top-ups and refunds against servers that are not ours: `localstripe`, and Stripe's own test mode.

localstripe is started as a process where it is installed. It knows cards, customers, payments and refunds, and takes
the requests of the official client; it has no Checkout, Connect or API v2 and keeps no idempotency keys, so what is
about those is tried on the fake Stripe (and, with STRIPE_TEST_KEY set, the requests here on Stripe itself).
"""

import os
import re
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import stripe as official
from django.conf import settings

from accounts.models import User
from billing.due import payments_advance
from billing.gateway.client import gateway
from billing.models import AutoTopUp, Refund, TopUp
from billing.reconciliation import reconcile
from billing.selectors import ledger_differences, wallet_balance
from billing.services import auto_top_up_stop, refund_create
from common.clock import utc_now
from marketplace.demo.site import free_port
from tests.billing.cast import USD, person

STRIPE = "https://api.stripe.com"
TEST_KEY = os.environ.get("STRIPE_TEST_KEY", "")
LOCALSTRIPE = shutil.which("localstripe", path=f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}")
GOOD, DECLINED = "4242424242424242", "4000000000000341"  # the second is declined when it is charged
UNKNOWN = re.compile(r"&?(description|receipt_email|created%5Bgte%5D|created\[gte\])=[^&]*")
pytestmark = [pytest.mark.django_db, pytest.mark.timeout(240)]


class Narrowed(official.RequestsClient):
    """Leaves out what localstripe refuses to be told though Stripe's reference has it: two words for the receipt,
    and the start of a list.
    """

    def request(self, method: str, url: str, headers: Any, post_data: Any = None, **usage: Any) -> Any:
        if isinstance(post_data, str):
            post_data = UNKNOWN.sub("", post_data)
        return super().request(method, UNKNOWN.sub("", url), headers, post_data, **usage)


@contextmanager
def localstripe() -> Iterator[str]:
    if LOCALSTRIPE is None:
        pytest.skip("localstripe is not installed: pip install localstripe")
    port = free_port()
    command = [LOCALSTRIPE, "--port", str(port), "--from-scratch"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()


@pytest.fixture(params=["localstripe", "test mode"])
def client(request, monkeypatch) -> Iterator[official.StripeClient]:
    """The official client, and a site that is set up for the same server."""
    if request.param == "localstripe":
        monkeypatch.setattr(official, "RequestsClient", Narrowed)
        with localstripe() as address:
            yield _set_up(monkeypatch, "sk_test_of_localstripe", address)
    elif TEST_KEY.startswith("sk_test_"):
        yield _set_up(monkeypatch, TEST_KEY, STRIPE)
    else:
        pytest.skip("STRIPE_TEST_KEY is not set to a key of Stripe's test mode")


def _set_up(monkeypatch, key: str, address: str) -> official.StripeClient:
    monkeypatch.setattr(settings, "STRIPE_SECRET_KEY", key)
    monkeypatch.setattr(settings, "STRIPE_API_BASE", address)
    client = official.StripeClient(
        key, base_addresses={"api": address}, http_client=official.RequestsClient(timeout=20)
    )
    for _ in range(150):
        try:
            client.v1.customers.list({"limit": 1})
        except official.APIConnectionError:
            time.sleep(0.2)
        else:
            return client
    raise TimeoutError(f"{address} did not start")


def with_card(client: official.StripeClient, number: str) -> User:
    """A buyer who has agreed and saved this card, without the page that only a browser can use."""
    bea = person(f"bea-{uuid.uuid4().hex[:8]}")
    customer = client.v1.customers.create({"email": bea.email})
    if settings.STRIPE_API_BASE == STRIPE:  # where numbers are not taken, and cards have names for tests
        named = "pm_card_visa" if number == GOOD else "pm_card_chargeCustomerFail"
        card = client.v1.payment_methods.attach(named, {"customer": customer.id})
    else:
        made: Any = {"number": number, "exp_month": 12, "exp_year": utc_now().year + 3, "cvc": "123"}
        card = client.v1.payment_methods.create({"type": "card", "card": made})
        client.v1.payment_methods.attach(card.id, {"customer": customer.id})
    AutoTopUp.objects.create(
        user=bea,
        state=AutoTopUp.State.ON,
        threshold_microusd=10 * USD,
        amount_microusd=25 * USD,
        monthly_cap_microusd=25 * USD,
        agreed_at=utc_now(),
        customer_id=customer.id,
        payment_method_id=card.id,
        next_try_at=utc_now(),
    )
    return bea


def test_a_saved_card_is_charged_and_a_part_goes_back(client):
    bea = with_card(client, GOOD)
    for _ in range(2):
        payments_advance(now=utc_now())
    top_up = TopUp.objects.get(user=bea)
    assert (top_up.state, wallet_balance(bea)) == (TopUp.State.PAID, 25 * USD)
    refund = refund_create(user=bea, top_up_id=top_up.pk, amount_microusd=5 * USD, idempotency_key="r")
    assert refund.state == Refund.State.SENT
    assert client.v1.refunds.retrieve(refund.stripe_id).amount == 500
    assert wallet_balance(bea) == 20 * USD
    assert ledger_differences() == []


def test_what_moved_there_is_paired_with_the_books(client):
    bea = with_card(client, GOOD)
    for _ in range(2):
        payments_advance(now=utc_now())
    since = utc_now() - timedelta(hours=2)
    result = reconcile(gateway().balance_transactions(since=since), since=since, now=utc_now())
    assert f"top_up:{TopUp.objects.get(user=bea).pk}" not in {
        mismatch.ledger_key for mismatch in result.mismatches
    }
    assert result.paired >= 1


def test_a_card_that_is_declined_fills_nothing(client):
    bea = with_card(client, DECLINED)
    for _ in range(2):
        payments_advance(now=utc_now())
    assert (TopUp.objects.get(user=bea).state, wallet_balance(bea)) == (TopUp.State.REFUSED, 0)
    assert AutoTopUp.objects.get(user=bea).note


def test_a_removed_card_is_no_customers_any_more(client):
    bea = with_card(client, GOOD)
    card_id = AutoTopUp.objects.get(user=bea).payment_method_id
    auto_top_up_stop(user=bea, forgets_card=True)
    payments_advance(now=utc_now())
    assert client.v1.payment_methods.retrieve(card_id).customer is None
