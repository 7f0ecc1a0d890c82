"""Webhooks: only what Stripe has signed just now is taken, kept as it came, and takes effect once in any order."""

import json
import time
from datetime import timedelta

import pytest

from accounts.models import User
from billing.domain.backoff import MAX_TRIES
from billing.models import StripeEvent
from billing.selectors import wallet_balance
from billing.services import top_up_create
from billing.webhooks.handling import events_handle_due
from billing.webhooks.receiving import MAX_BODY_BYTES
from common.clock import utc_now
from tests.billing.cast import USD, person
from tests.fake_stripe.server import WEBHOOK_SECRET, send, signature

pytestmark = pytest.mark.django_db


@pytest.fixture
def paid(stripe):
    """The event of a payment by Bea that the site has not heard of."""
    top_up = top_up_create(user=person("bea"), amount_microusd=20 * USD, idempotency_key="k")
    stripe.world.pay(top_up.session_id)
    return next(event for event in stripe.untold() if event["type"] == "checkout.session.completed")


def post(client, body: bytes, header: str):
    return client.post(
        "/stripe/webhook/", body, content_type="application/json", headers={"Stripe-Signature": header}
    )


def signed_now(body: str) -> str:
    return signature(body, secret=WEBHOOK_SECRET, signed_at=time.time())


@pytest.mark.parametrize(
    "change",
    [{"secret": "whsec_of_somebody_else"}, {"signed_at": time.time() - 301}],
    ids=["a wrong secret", "too long ago"],
)
def test_what_stripe_has_not_signed_just_now_is_refused_and_not_stored(client, paid, change):
    assert send(client, paid, **change) == 400
    assert StripeEvent.objects.count() == 0


@pytest.mark.parametrize("header", ["", "t=1,v1=", "nonsense", "t=x,v1=00", "v0=1,t=2"])
def test_a_header_that_is_no_signature_is_refused(client, stripe, header):
    answer = post(client, b"{}", header)
    assert (answer.status_code, answer.json()["code"]) == (400, "webhook_unsigned")


def test_a_changed_body_is_refused(client, paid):
    header = signed_now(json.dumps(paid))
    paid["data"]["object"]["amount_total"] = 1
    assert post(client, json.dumps(paid).encode(), header).status_code == 400


def test_a_megabyte_is_refused_before_it_is_looked_at(client, stripe):
    body = "x" * 1_000_000
    answer = post(client, body.encode(), signed_now(body))
    assert (answer.status_code, answer.json()["code"]) == (413, "webhook_too_large")
    assert MAX_BODY_BYTES < 1_000_000


@pytest.mark.parametrize(
    "body",
    ["{}", "[]", "null", "nonsense", '{"object": "event", "id": "evt_1"}', '{"object": "v2.core.event"}'],
)
def test_what_is_signed_but_no_event_is_refused(client, stripe, body):
    answer = post(client, body.encode(), signed_now(body))
    assert (answer.status_code, answer.json()["code"]) == (400, "webhook_unreadable")


def test_bytes_that_are_no_text_are_refused(client, stripe):
    assert post(client, b"\xff\xfe", signed_now("")).status_code == 400


def test_an_event_is_kept_as_it_came(client, paid):
    send(client, paid)
    event = StripeEvent.objects.get()
    assert json.loads(event.body) == paid
    assert (event.event_id, event.object_id) == (paid["id"], paid["data"]["object"]["id"])


def test_a_type_that_nobody_knows_is_kept_and_ignored(client, stripe):
    stripe.world.tell("invoice.finalized", {"id": "in_1"})
    assert stripe.deliver(client) == [200]
    assert StripeEvent.objects.get().state == StripeEvent.State.IGNORED


def test_an_event_that_comes_before_its_object_waits_and_takes_effect_when_it_can(client, stripe, paid):
    bea = User.objects.get(email="bea@example.org")
    stripe.world.dispute(paid["data"]["object"]["payment_intent"])
    assert stripe.deliver(client) == [200, 200]
    assert set(StripeEvent.objects.values_list("state", flat=True)) == {StripeEvent.State.EARLY}
    send(client, paid)
    assert wallet_balance(bea) == 20 * USD
    events_handle_due(now=utc_now() + timedelta(minutes=5))
    assert wallet_balance(bea) == 0
    assert set(StripeEvent.objects.values_list("state", flat=True)) == {StripeEvent.State.HANDLED}


def test_an_event_about_nothing_of_ours_is_given_up_in_the_end(client, stripe):
    stripe.world.tell("payout.paid", {"id": "po_of_another_site", "status": "paid"})
    stripe.deliver(client)
    for number in range(MAX_TRIES + 3):
        events_handle_due(now=utc_now() + timedelta(hours=7 * number))
    event = StripeEvent.objects.get()
    assert (event.state, event.next_try_at) == (StripeEvent.State.IGNORED, None)
    assert event.tries <= MAX_TRIES


def test_an_event_that_cannot_be_handled_is_kept_answered_and_tried_again(client, stripe, caplog):
    stripe.world.tell("transfer.reversed", {"id": "tr_1"})  # as it never is: without what it must have
    assert stripe.deliver(client) == [200]
    event = StripeEvent.objects.get()
    assert (event.state, event.note) == (StripeEvent.State.FAILED, "KeyError")
    assert event.next_try_at is not None
