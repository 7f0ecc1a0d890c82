"""An owner's program is told of each state of a payout: signed, tried again, logged, never at an inner address."""

import json
import time
from datetime import timedelta
from typing import Any

import httpx
import pytest
import stripe as official
from rest_framework.test import APIClient

from billing import delivering
from billing.delivering import NotPublic, post_publicly
from billing.domain.backoff import MAX_TRIES
from billing.due import payments_advance
from billing.models import OwnerDelivery
from billing.services import payout_request
from common.clock import utc_now
from tests.billing.cast import USD, person
from tests.billing.owners import earner, ready
from tests.fake_stripe import Fault

pytestmark = pytest.mark.django_db
URL = "https://program.example.org/nightshift"


class Receiver:
    """The owner's program; `statuses` are what it answers with, the last one for ever."""

    def __init__(self) -> None:
        self.got: list[tuple[str, str, dict[str, str]]] = []
        self.statuses: list[int | Exception] = [200]

    def post(self, url: str, body: str, headers: dict[str, str]) -> int:
        self.got.append((url, body, headers))
        status = self.statuses.pop(0) if len(self.statuses) > 1 else self.statuses[0]
        if isinstance(status, Exception):
            raise status
        return status


@pytest.fixture
def receiver(monkeypatch) -> Receiver:
    receiver = Receiver()
    monkeypatch.setattr(delivering, "post_publicly", receiver.post)
    return receiver


@pytest.fixture
def otto(stripe):
    return ready(stripe, earner())


def client_of(user) -> APIClient:
    client = APIClient()
    client.force_login(user)
    return client


def hooked(user, url: str = URL):
    return client_of(user).post("/api/payouts/hooks/", {"url": url})


def asked(user) -> None:
    payout_request(user=user, amount_microusd=50 * USD, idempotency_key="k")


def deliveries(user) -> Any:
    return client_of(user).get("/api/payouts/deliveries/").data["results"]


def test_each_state_is_told_with_a_signature_that_stripes_own_library_accepts(otto, receiver):
    secret = hooked(otto).data["secret"]
    asked(otto)
    payments_advance(now=utc_now())
    payments_advance(now=utc_now())
    assert [json.loads(body)["type"] for _, body, _ in receiver.got] == [
        "payout.debited",
        "payout.transferred",
    ]
    url, body, headers = receiver.got[0]
    assert url == URL
    assert json.loads(body)["payout"]["net_microusd"] == 49_750_000
    assert official.WebhookSignature.verify_header(body, headers["Nightshift-Signature"], secret, 60)
    with pytest.raises(official.SignatureVerificationError):
        official.WebhookSignature.verify_header(body + " ", headers["Nightshift-Signature"], secret)
    assert int(headers["Nightshift-Signature"][2:12]) <= time.time() + 1
    assert {row["state"] for row in deliveries(otto)} == {"delivered"}


def test_a_program_that_is_down_is_told_again_later_and_once(stripe, otto, receiver):
    hooked(otto)
    stripe.faults.append(Fault("/v1/transfers", "lost", times=100))  # so that there is one piece of news
    receiver.statuses = [503, httpx.ConnectError("down"), 302, 204]
    asked(otto)
    for minutes in (0, 5, 30, 120, 500):
        payments_advance(now=utc_now() + timedelta(minutes=minutes))
    delivery = OwnerDelivery.objects.get()
    assert (delivery.state, delivery.tries, delivery.last_answer) == ("delivered", 4, "HTTP 204")
    assert len(receiver.got) == 4
    assert len({body for _, body, _ in receiver.got}) == 1


def test_a_program_that_never_answers_is_given_up_and_can_be_told_by_hand(otto, receiver):
    hooked(otto)
    receiver.statuses = [500]
    asked(otto)
    for number in range(MAX_TRIES + 3):
        payments_advance(now=utc_now() + timedelta(hours=7 * number))
    rows = deliveries(otto)
    assert {(row["state"], row["tries"], row["last_answer"]) for row in rows} == {
        ("given_up", MAX_TRIES, "HTTP 500")
    }
    receiver.statuses = [200]
    again = client_of(otto).post(f"/api/payouts/deliveries/{rows[0]['id']}/replay/")
    assert again.status_code == 202
    payments_advance(now=utc_now() + timedelta(seconds=1))
    assert OwnerDelivery.objects.get(pk=rows[0]["id"]).state == "delivered"


@pytest.mark.parametrize(
    "url",
    [
        "http://program.example.org/",
        "ftp://x/",
        "https://",
        "https://me:secret@x.org/",
        "x",
        "https://x/" + "y" * 300,
    ],
)
def test_an_address_that_is_none_is_refused(otto, url):
    answer = hooked(otto, url)
    assert (answer.status_code, answer.data["field"]) == (400, "url")


def test_the_same_address_is_one_hook_and_there_are_five_at_most(otto):
    assert hooked(otto).data["id"] == hooked(otto).data["id"]
    for number in range(4):
        assert hooked(otto, f"{URL}/{number}").status_code == 201
    answer = hooked(otto, f"{URL}/more")
    assert (answer.status_code, answer.data["code"]) == (409, "hook_limit")


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "10.0.0.1", "169.254.169.254", "[::1]", "localhost", "[::ffff:10.0.0.1]", "[::]"]
)
def test_nothing_is_ever_sent_to_an_inner_address(host):
    with pytest.raises(NotPublic):
        post_publicly(f"https://{host}/", "{}", {})


def test_a_hook_and_its_log_are_its_owners_alone(otto, receiver):
    hook_id = hooked(otto).data["id"]
    asked(otto)
    other = client_of(person("olga"))
    assert other.get("/api/payouts/hooks/").data == []
    assert other.delete(f"/api/payouts/hooks/{hook_id}/").status_code == 404
    delivery = OwnerDelivery.objects.first()
    assert delivery is not None
    assert other.post(f"/api/payouts/deliveries/{delivery.pk}/replay/").status_code == 404
    shown = client_of(otto).get("/api/payouts/hooks/").data
    assert [set(hook) for hook in shown] == [{"id", "url", "created_at"}]  # never its secret again
    assert client_of(otto).delete(f"/api/payouts/hooks/{hook_id}/").status_code == 204
    assert OwnerDelivery.objects.count() == 0
