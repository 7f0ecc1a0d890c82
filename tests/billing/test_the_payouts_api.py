"""The payouts API: the same as the services do, in JSON, for the right token, about one's own money only."""

import uuid
from datetime import timedelta

import pytest
from django.core.management import call_command
from rest_framework.test import APIClient

from accounts.services import api_token_create
from billing.api.throttles import PayoutWrites
from billing.models import Payout
from billing.selectors import earnings_balance
from billing.services import payout_account_weekly
from common.clock import utc_now
from tests.billing.cast import USD, person
from tests.billing.owners import earn, earner, ready

pytestmark = pytest.mark.django_db
PHONE, TABLET = uuid.UUID(int=1), uuid.UUID(int=2)


def client_of(user, *scopes: str) -> APIClient:
    client = APIClient()
    _, plain = api_token_create(user=user, name="test", scopes=scopes or ("payouts:read", "payouts:write"))
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {plain}")
    return client


def ask(client, *, usd: int = 50, key: str = "first", **body):
    form = {"amount_microusd": usd * USD, **body}
    return client.post("/api/payouts/", form, headers={"Idempotency-Key": key})


@pytest.fixture
def otto(stripe):
    return ready(stripe, earner(device_id=PHONE))


def test_balances_say_what_matures_and_what_can_be_paid(otto):
    earn(otto, usd=16, label="new", earned_at=utc_now())
    ask(client_of(otto))
    balances = client_of(otto).get("/api/payouts/balances/").data
    assert balances["maturing_microusd"] == 16 * USD
    assert balances["available_microusd"] == 30 * USD
    assert balances["on_the_way_microusd"] == 50 * USD
    assert balances["paid_microusd"] == 0
    assert balances["next_matures_at"] is not None


def test_a_payout_is_asked_for_shown_and_listed(otto):
    client = client_of(otto)
    made = ask(client)
    assert made.status_code == 201
    assert (made.data["state"], made.data["net_microusd"]) == ("debited", 49_750_000)
    shown = client.get(f"/api/payouts/{made.data['id']}/").data
    assert [step["state"] for step in shown["steps"]] == ["requested", "debited"]
    assert [payout["id"] for payout in client.get("/api/payouts/").data["results"]] == [made.data["id"]]


def test_the_same_key_asks_once_and_with_another_body_is_a_conflict(otto):
    client = client_of(otto)
    assert ask(client).data["id"] == ask(client).data["id"]
    again = ask(client, usd=51)
    assert (again.status_code, again.data["code"]) == (409, "idempotency_conflict")
    assert earnings_balance(otto) == 30 * USD


@pytest.mark.parametrize(
    ("body", "key", "status", "code", "field"),
    [
        ({"amount_microusd": 0}, "k", 400, "amount_invalid", "amount_microusd"),
        ({"amount_microusd": -5 * USD}, "k", 400, "amount_invalid", "amount_microusd"),
        ({"amount_microusd": 10 * USD + 1}, "k", 400, "amount_invalid", "amount_microusd"),
        ({"amount_microusd": "10.5"}, "k", 400, "invalid_input", "amount_microusd"),
        ({"amount_microusd": 10**19}, "k", 400, "amount_invalid", "amount_microusd"),
        ({"amount_microusd": 70 * USD, "currency": "eur"}, "k", 400, "currency_unknown", "currency"),
        ({"amount_microusd": 81 * USD}, "k", 402, "earnings_immature", "amount_microusd"),
        ({"amount_microusd": 50 * USD}, "", 400, "idempotency_key_invalid", "idempotency_key"),
        ({}, "k", 400, "invalid_input", "amount_microusd"),
    ],
)
def test_bad_input_is_one_clear_error_and_moves_nothing(otto, body, key, status, code, field):
    answer = client_of(otto).post("/api/payouts/", body, headers={"Idempotency-Key": key})
    assert (answer.status_code, answer.data["code"], answer.data["field"]) == (status, code, field)
    assert (Payout.objects.count(), earnings_balance(otto)) == (0, 80 * USD)


def test_another_owners_payout_looks_like_none(otto):
    payout_id = ask(client_of(otto)).data["id"]
    other = client_of(person("olga"))
    answer = other.get(f"/api/payouts/{payout_id}/")
    assert (answer.status_code, answer.data["code"]) == (404, "payout_not_found")
    assert other.get("/api/payouts/").data["results"] == []
    assert other.get("/api/payouts/earnings/").data["results"] == []


def test_a_token_without_the_scope_is_turned_away(otto):
    assert client_of(otto, "money:read").get("/api/payouts/balances/").status_code == 403
    assert ask(client_of(otto, "payouts:read")).status_code == 403
    assert APIClient().get("/api/payouts/").status_code == 401


def test_earnings_are_by_day_and_device_and_can_be_filtered(otto):
    earn(otto, usd=4, label="tablet", device_id=TABLET, earned_at=utc_now() - timedelta(days=2))
    earn(otto, usd=8, label="again", device_id=TABLET, earned_at=utc_now() - timedelta(days=2))
    client = client_of(otto)
    newest, oldest = client.get("/api/payouts/earnings/").data["results"]
    assert (newest["device_id"], newest["charges"], newest["net_microusd"]) == (str(TABLET), 2, 12 * USD)
    assert (newest["gross_microusd"], newest["fee_microusd"]) == (15 * USD, 3 * USD)
    assert (oldest["device_id"], oldest["net_microusd"]) == (str(PHONE), 80 * USD)
    of_phone = client.get("/api/payouts/earnings/", {"device": str(PHONE)}).data["results"]
    assert [row["device_id"] for row in of_phone] == [str(PHONE)]
    late = client.get("/api/payouts/earnings/", {"since": newest["day"]}).data["results"]
    assert [row["device_id"] for row in late] == [str(TABLET)]
    wrong = client.get("/api/payouts/earnings/", {"since": "2026-02-01", "until": "2026-01-01"})
    assert (wrong.status_code, wrong.data["field"]) == (400, "until")


def test_pages_follow_the_cursor_and_miss_or_repeat_nothing(otto, monkeypatch):
    monkeypatch.setattr("billing.api.views.ByDay.page_size", 2)
    for number in range(5):
        day = utc_now() - timedelta(days=number % 2 + 1)
        earn(otto, usd=1, label=f"day {number}", device_id=uuid.UUID(int=10 + number), earned_at=day)
    client, seen, address = client_of(otto), [], "/api/payouts/earnings/"
    while address:
        page = client.get(address).data
        seen += [row["device_id"] for row in page["results"]]
        address = page["next"]
    assert len(seen) == len(set(seen)) == 6


def test_the_csv_has_all_of_it(otto):
    answer = client_of(otto).get("/api/payouts/earnings.csv")
    assert answer["Content-Type"].startswith("text/csv")
    heading, row = b"".join(answer).decode().splitlines()
    assert heading == "day,device_id,charges,gross_microusd,fee_microusd,net_microusd"
    assert row.endswith(f",{PHONE},1,100000000,20000000,80000000")


def test_the_estimate_says_gross_fee_and_net_and_whether_it_would_be_taken(otto):
    client = client_of(otto)
    everything = client.get("/api/payouts/estimate/").data
    assert everything == {
        "gross_microusd": 80 * USD,
        "fee_microusd": 250_000,
        "net_microusd": 79_750_000,
        "possible": True,
        "because": "",
    }
    little = client.get("/api/payouts/estimate/", {"amount_microusd": 2 * USD}).data
    assert (little["possible"], little["because"]) == (
        False,
        "The least that can be paid out in your country is $5.00.",
    )
    nobody = client_of(person("olga")).get("/api/payouts/estimate/").data
    assert (nobody["gross_microusd"], nobody["possible"]) == (0, False)


def test_the_account_says_in_words_what_to_do(otto):
    assert "choose your country" in client_of(person("olga")).get("/api/payouts/account/").data["words"]
    payout_account_weekly(user=otto, weekly=True)
    account = client_of(otto).get("/api/payouts/account/").data
    assert (account["country"], account["status"], account["weekly"]) == ("US", "active", True)
    assert account["words"] == "You can be paid out."


def test_a_program_that_runs_wild_is_slowed_down(otto, monkeypatch):
    monkeypatch.setattr(PayoutWrites, "rate", "2/min")
    client = client_of(otto)
    assert [ask(client).status_code for _ in range(3)] == [201, 201, 429]
    assert ask(client)["Retry-After"]
    assert client.get("/api/payouts/").status_code == 200


def test_the_api_is_described_without_complaint(tmp_path):
    path = tmp_path / "schema.yml"
    call_command("spectacular", "--fail-on-warn", "--validate", "--file", str(path))
    assert "/api/payouts/estimate/" in path.read_text()
