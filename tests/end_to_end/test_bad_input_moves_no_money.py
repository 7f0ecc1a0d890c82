"""Whatever is sent to a real server about money: a 4xx with a stable code, and the books as they were."""

import hashlib
import json
import re
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from marketplace.demo.site import Site
from tests.end_to_end.conftest import ROOT
from tests.fake_stripe import FakeStripe
from tests.fake_stripe.server import SECRET_KEY, WEBHOOK_SECRET, signature
from tests.fake_stripe.world import Json

pytestmark = [pytest.mark.end_to_end, pytest.mark.timeout(240)]
USD = 1_000_000
OWNERS = 4  # bad input counts towards how often one may ask
TABLES = (
    "account",
    "transfer",
    "posting",
    "payout",
    "payoutstep",
    "topup",
    "refund",
    "autotopup",
    "stripecall",
    "stripeevent",
)
UNKNOWN = "00000000-0000-4000-8000-000000000000"


@dataclass
class Money:
    """A site that speaks to a Stripe of its own, and the people on it."""

    url: str
    stripe: FakeStripe
    database: Path
    owners: list[str]
    reads: str
    session: str

    def api(self, method: str, path: str, *, token: str, **sent: Any) -> httpx.Response:
        headers = {"Authorization": f"Bearer {token}", **sent.pop("headers", {})}
        return httpx.request(method, f"{self.url}/api/payouts/{path}", headers=headers, timeout=30, **sent)

    def webhook(self, body: bytes, header: str, **sent: Any) -> httpx.Response:
        headers = {"Stripe-Signature": header, "Content-Type": "application/json"}
        return httpx.post(f"{self.url}/stripe/webhook/", content=body, headers=headers, timeout=30, **sent)

    def books(self, *, but: str = "") -> str:
        """All balances, and all that was ever stored about money; the rows of one table can be left out."""
        with sqlite3.connect(f"file:{self.database}?mode=ro", uri=True, timeout=20) as connection:
            stored = [
                connection.execute(f"SELECT * FROM billing_{name} ORDER BY 1").fetchall()  # noqa: S608
                for name in TABLES
                if name != but
            ]
        return hashlib.sha256(repr(stored).encode()).hexdigest()


@pytest.fixture(scope="module")
def money(tmp_path_factory) -> Iterator[Money]:
    folder = tmp_path_factory.mktemp("money")
    with FakeStripe() as stripe:
        stripe.world.balance_cents = 1_000_000
        site = Site(folder=folder, root=ROOT)
        site.environ = {
            **site.environ,
            "NIGHTSHIFT_STRIPE_SECRET_KEY": SECRET_KEY,
            "NIGHTSHIFT_STRIPE_WEBHOOK_SECRETS": WEBHOOK_SECRET,
            "NIGHTSHIFT_STRIPE_API_BASE": stripe.address,
        }
        cast = subprocess.run(
            [
                sys.executable,
                "-m",
                "tests.end_to_end.money_cast",
                *(open_account(stripe) for _ in range(OWNERS)),
            ],
            cwd=ROOT,
            env=dict(site.environ),
            capture_output=True,
            text=True,
            check=True,
        )
        try:
            site.start()
            money = Money(site.url, stripe, folder / "nightshift.sqlite3", **json.loads(cast.stdout))
            with_one_payout(money)
            yield money
            checked = subprocess.run(
                [sys.executable, "manage.py", "check_ledger"],
                cwd=ROOT,
                env=dict(site.environ),
                capture_output=True,
            )
            assert checked.returncode == 0, checked.stdout
        finally:
            site.stop()


def open_account(stripe: FakeStripe) -> str:
    account = stripe.world.new("acct", "v2.core.account", closed=False, schedule="manual")
    capability = {"stripe_balance": {"stripe_transfers": {"status": "active"}}}
    account["configuration"] = {"recipient": {"capabilities": capability}}
    stripe.world.account_cents[account["id"]] = 0
    return str(account["id"])


def with_one_payout(money: Money) -> None:
    """The first owner's, all the way to the bank: so that nothing is under way when the books are looked at."""
    made = ask(money, {"amount_microusd": 50 * USD}, key="first").json()
    deadline = time.monotonic() + 60
    while not money.stripe.world.of("payout"):
        assert time.monotonic() < deadline, "the payout does not reach the bank"
        time.sleep(0.1)
    money.stripe.world.bank_takes(money.stripe.world.of("payout")[0]["id"])
    event = money.stripe.world.events[-1]
    while money.api("GET", f"{made['id']}/", token=money.owners[0]).json()["state"] != "paid":
        assert time.monotonic() < deadline, "the payout is not paid"
        told(money, event)  # again, as Stripe would, until our side knows what it is about
        time.sleep(0.2)


def ask(money: Money, body: Any, *, key: str, token: str = "") -> httpx.Response:
    headers = {"Idempotency-Key": key} if key else {}
    sent = {"content": body} if isinstance(body, bytes) else {"json": body}
    if isinstance(body, bytes):
        headers["Content-Type"] = "application/json"
    return money.api("POST", "", token=token or money.owners[0], headers=headers, **sent)


def told(money: Money, event: Json, **changed: Any) -> httpx.Response:
    body = json.dumps(event)
    given = {"secret": WEBHOOK_SECRET, "signed_at": time.time(), **changed}
    return money.webhook(body.encode(), signature(body, **given))


FIFTY = 50 * USD
PAYOUTS: list[tuple[Any, str, int, str, str | None]] = [
    ({"amount_microusd": 0}, "k", 400, "amount_invalid", "amount_microusd"),
    ({"amount_microusd": -FIFTY}, "k", 400, "amount_invalid", "amount_microusd"),
    ({"amount_microusd": FIFTY + 1}, "k", 400, "amount_invalid", "amount_microusd"),
    ({"amount_microusd": FIFTY + 0.5}, "k", 400, "invalid_input", "amount_microusd"),
    ({"amount_microusd": "50.5"}, "k", 400, "invalid_input", "amount_microusd"),
    ({"amount_microusd": "0x10"}, "k", 400, "invalid_input", "amount_microusd"),
    ({"amount_microusd": True}, "k", 400, "invalid_input", "amount_microusd"),
    ({"amount_microusd": None}, "k", 400, "invalid_input", "amount_microusd"),
    ({"amount_microusd": [FIFTY]}, "k", 400, "invalid_input", "amount_microusd"),
    ({"amount_microusd": 4 * USD}, "k", 400, "amount_invalid", "amount_microusd"),
    ({"amount_microusd": 10_001 * USD}, "k", 400, "amount_invalid", "amount_microusd"),
    ({"amount_microusd": 10**18}, "k", 400, "amount_invalid", "amount_microusd"),
    ({"amount_microusd": 10**30}, "k", 400, "amount_invalid", "amount_microusd"),
    ({"amount_microusd": 81 * USD}, "k", 402, "earnings_immature", "amount_microusd"),
    ({"amount_microusd": FIFTY, "currency": "eur"}, "k", 400, "currency_unknown", "currency"),
    ({"amount_microusd": FIFTY, "currency": "USD"}, "k", 400, "currency_unknown", "currency"),
    ({"amount_microusd": FIFTY, "currency": ""}, "k", 400, "invalid_input", "currency"),
    ({"amount_microusd": FIFTY, "currency": None}, "k", 400, "invalid_input", "currency"),
    ({"amount_microusd": FIFTY}, "", 400, "idempotency_key_invalid", "idempotency_key"),
    ({"amount_microusd": FIFTY}, "x" * 81, 400, "idempotency_key_invalid", "idempotency_key"),
    ({}, "k", 400, "invalid_input", "amount_microusd"),
    ([], "k", 400, "invalid_input", None),
    (b"", "k", 400, "invalid_input", "amount_microusd"),
    (b"{", "k", 400, "parse_error", None),
    (b'{"amount_microusd": NaN}', "k", 400, "parse_error", None),
    (b'{"amount_microusd": 1e999}', "k", 400, "parse_error", None),
    (b'{"amount_microusd": ' + b"9" * 10_000 + b"}", "k", 400, "parse_error", None),
    (b'{"amount_microusd": "\xff"}', "k", 400, "parse_error", None),
    (b"[" * 100_000, "k", 400, "parse_error", None),
    (b'{"a": "' + b"a" * 4_000_000 + b'"}', "k", 413, "request_too_big", None),
]


def test_no_bad_request_for_a_payout_moves_anything(money):
    before, problems = money.books(), []
    for number, (body, key, *wanted) in enumerate(PAYOUTS):
        # Not the first owner: that one has 30 USD left.
        answer = ask(money, body, key=key, token=money.owners[1 + number % (OWNERS - 1)])
        found = [answer.status_code, answer.json()["code"], answer.json()["field"]]
        if found != wanted or not answer.json()["message"].endswith((".", ")")):
            problems.append((str(body)[:60], wanted, answer.text[:200]))
    assert problems == []
    assert money.books() == before


def test_a_key_that_was_used_is_a_repeat_or_a_conflict(money):
    before = money.books()
    again = ask(money, {"amount_microusd": FIFTY}, key="first")
    assert (again.status_code, again.json()["state"]) == (201, "paid")
    other = ask(money, {"amount_microusd": 10 * USD}, key="first")
    assert (other.status_code, other.json()["code"]) == (409, "idempotency_conflict")
    assert money.books() == before


def test_whoever_may_not_is_turned_away(money):
    before = money.books()
    mine = money.api("GET", "", token=money.owners[0]).json()["results"][0]["id"]
    reader, owner = money.reads, money.owners[3]
    wanted = [
        ("GET", f"{mine}/", money.owners[2], 404, "payout_not_found"),
        ("GET", f"{UNKNOWN}/", owner, 404, "payout_not_found"),
        ("GET", "not-an-id/", owner, 404, "not_found"),
        ("DELETE", f"{mine}/", owner, 405, "method_not_allowed"),
        ("POST", f"{mine}/", owner, 405, "method_not_allowed"),
        ("GET", "", "nobody", 401, "api_token_unknown"),
        ("GET", "", reader, 403, "scope_missing"),
        ("POST", "", reader, 403, "scope_missing"),
        ("GET", "earnings/?since=yesterday", owner, 400, "invalid_input"),
        ("GET", "earnings/?since=2026-02-01&until=2026-01-01", owner, 400, "invalid_input"),
        ("GET", "earnings/?device=1", owner, 400, "invalid_input"),
        ("GET", "earnings/?cursor=cD15ZXN0ZXJkYXk%3D", owner, 404, "not_found"),
        ("GET", "earnings.csv?since=1", owner, 400, "invalid_input"),
        ("GET", "estimate/?amount_microusd=-1", owner, 400, "invalid_input"),
        ("GET", "estimate/?amount_microusd=1.5", owner, 400, "invalid_input"),
        ("POST", f"deliveries/{UNKNOWN}/replay/", owner, 404, "hook_not_found"),
    ]
    for method, path, token, status, code in wanted:
        answer = money.api(method, path, token=token)
        assert (answer.status_code, answer.json()["code"]) == (status, code), (
            method,
            path,
            answer.text[:300],
        )
    assert money.books() == before


@pytest.mark.parametrize(
    "usd",
    ["", "0", "-5", "4.99", "20.001", "10000.01", "1e3000", "NaN", "Infinity", "five", "5" * 5_000, "\x00"],
)
def test_no_bad_top_up_opens_a_page(money, usd):
    before = money.books()
    with httpx.Client(base_url=money.url, cookies={"sessionid": money.session}, timeout=30) as browser:
        page = browser.get("/payments/", headers={"Accept": "text/html"}).text
        form = dict(re.findall(r'name="(csrfmiddlewaretoken|key)" value="([^"]+)"', page))
        answer = browser.post("/payments/", data={**form, "usd": usd}, headers={"Accept": "text/html"})
    assert answer.status_code == 400
    assert re.search(r'<p class="error" id="id_usd_error">[^<]+</p>', answer.text)
    assert money.books() == before


def test_a_top_up_without_its_key_or_from_elsewhere_opens_no_page(money):
    before = money.books()
    with httpx.Client(base_url=money.url, cookies={"sessionid": money.session}, timeout=30) as browser:
        page = browser.get("/payments/", headers={"Accept": "text/html"}).text
        token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page)
        assert token
        for key in ({}, {"key": ""}, {"key": "k" * 81}):
            form = {"csrfmiddlewaretoken": token[1], "usd": "20", **key}
            assert browser.post("/payments/", data=form).status_code == 400
        assert browser.post("/payments/", data={"usd": "20", "key": "k"}).status_code == 403
    assert httpx.post(f"{money.url}/payments/", data={"usd": "20", "key": "k"}).status_code == 403
    assert money.books() == before


def test_no_webhook_that_stripe_did_not_sign_just_now_is_kept(money):
    before = money.books()
    event = {**money.stripe.world.events[-1], "id": "evt_made_up"}
    body = json.dumps(event).encode()
    megabyte = b"x" * 1_000_000
    now = time.time()

    def signed(content: bytes) -> str:
        return signature(content.decode("latin-1"), secret=WEBHOOK_SECRET, signed_at=now)

    wanted = [
        (body, "", 400, "webhook_unsigned"),
        (body, "t=1,v1=00", 400, "webhook_unsigned"),
        (body, "nonsense", 400, "webhook_unsigned"),
        (body, signature(body.decode(), secret="whsec_other", signed_at=now), 400, "webhook_unsigned"),
        (body, signature(body.decode(), secret=WEBHOOK_SECRET, signed_at=now - 301), 400, "webhook_unsigned"),
        (body.replace(b"paid", b"PAID"), signed(body), 400, "webhook_unsigned"),
        (megabyte, signed(megabyte), 413, "webhook_too_large"),
        (b"", signed(b""), 400, "webhook_unreadable"),
        (b"{}", signed(b"{}"), 400, "webhook_unreadable"),
        (b"\xff\xfe", signed(b"\xff\xfe"), 400, "webhook_unreadable"),
    ]
    for content, header, status, code in wanted:
        answer = money.webhook(content, header)
        assert (answer.status_code, answer.json()["code"]) == (status, code), (content[:40], answer.text)
    assert httpx.get(f"{money.url}/stripe/webhook/").status_code == 405
    assert money.books() == before


def test_an_event_that_comes_again_or_in_another_currency_moves_nothing(money):
    stripe = money.stripe
    with httpx.Client(base_url=money.url, cookies={"sessionid": money.session}, timeout=30) as browser:
        page = browser.get("/payments/", headers={"Accept": "text/html"}).text
        form = dict(re.findall(r'name="(csrfmiddlewaretoken|key)" value="([^"]+)"', page))
        assert browser.post("/payments/", data={**form, "usd": "20"}).status_code == 302
    session = stripe.world.of("checkout.session")[-1]
    stripe.world.pay(session["id"])
    paid = stripe.world.events[-1]
    in_euro = {**paid, "id": "evt_in_euro", "data": {"object": {**paid["data"]["object"], "currency": "eur"}}}
    assert told(money, in_euro).status_code == 200  # stored, for an operator to look at
    assert wallet_cents(money) == 10_000
    assert told(money, paid).status_code == 200
    assert wallet_cents(money) == 12_000
    before = money.books()
    assert told(money, paid).status_code == 200
    assert money.books() == before
    before = money.books(but="stripeevent")  # which counts how often it was tried
    assert told(money, in_euro).status_code == 200
    assert money.books(but="stripeevent") == before


def wallet_cents(money: Money) -> int:
    headers = {"Authorization": f"Bearer {money.reads}"}
    wallet = httpx.get(f"{money.url}/api/wallet/", headers=headers, timeout=30).json()
    return int(wallet["wallet_microusd"]) // 10_000
