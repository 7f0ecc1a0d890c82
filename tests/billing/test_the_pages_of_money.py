"""The pages lead through paying in and being paid out, and say in words what is the matter."""

import re

import pytest
from django.template import Engine
from django.test import Client

from billing.due import payments_advance
from billing.models import AutoTopUp, Payout, Refund, TopUp
from billing.selectors import earnings_balance, wallet_balance
from billing.services import top_up_create
from common.clock import utc_now
from tests.billing.cast import USD, person
from tests.billing.owners import earn, earner, ready

pytestmark = pytest.mark.django_db


class _Loud(str):
    """Django puts this where a template names a variable that does not exist."""

    def __mod__(self, name: object) -> str:
        raise AssertionError(f"the template names {name}, which does not exist")


@pytest.fixture(autouse=True)
def _templates_name_only_what_exists(monkeypatch):
    monkeypatch.setattr(Engine.get_default(), "string_if_invalid", _Loud("%s"))


def browser_of(user) -> Client:
    client = Client(HTTP_ACCEPT="text/html")
    client.force_login(user)
    return client


def key_on(browser, path: str) -> str:
    found = re.search(r'name="key" value="([^"]+)"', browser.get(path).content.decode())
    assert found, f"no form on {path}"
    return found.group(1)


def said(answer) -> str:
    return " ".join(str(message) for message in answer.context["messages"])


def test_a_buyer_pays_in_and_takes_a_part_back(stripe, client):
    bea = person("bea")
    browser = browser_of(bea)
    form = {"usd": "20.00", "key": key_on(browser, "/payments/")}
    page = browser.post("/payments/", form, follow=True)
    browser.post("/payments/", form)
    top_up = TopUp.objects.get()
    assert f'href="{top_up.page_url}"' in page.content.decode()
    stripe.world.pay(top_up.session_id)
    stripe.deliver(client)
    path = f"/payments/top-ups/{top_up.pk}/"
    assert "Up to $20.00" in browser.get(path).content.decode()
    answer = browser.post(f"{path}refund/", {"usd": "5", "key": key_on(browser, path)}, follow=True)
    assert "on its way" in said(answer)
    assert (wallet_balance(bea), Refund.objects.get().amount_microusd) == (15 * USD, 5 * USD)
    assert "$15.00" in browser.get("/wallet/").content.decode()


@pytest.mark.parametrize("usd", ["1", "0", "-5", "20.001", "x", "", "99999999"])
def test_an_amount_that_cannot_be_paid_is_said_and_opens_no_page(stripe, usd):
    browser = browser_of(person("bea"))
    answer = browser.post("/payments/", {"usd": usd, "key": "k"})
    assert answer.status_code == 400
    (problem,) = answer.context["form"].errors["usd"]
    if usd == "1":
        assert problem == "The amount must be from $5.00 to $10,000.00, and is $1.00."
    assert f'value="{usd}"' in answer.content.decode() or not usd
    assert TopUp.objects.count() == 0


BAD_AMOUNTS = [
    ("", "Amount in USD: This field is required."),
    ("x", "Amount in USD: Enter a number."),
    ("nan", "Amount in USD: Enter a number."),
    ("0", "Amount in USD: Ensure this value is greater than or equal to 0.01."),
    ("-5", "Amount in USD: Ensure this value is greater than or equal to 0.01."),
    ("4.001", "Amount in USD: Ensure that there are no more than 2 decimal places."),
    ("99999999", "Amount in USD: Ensure that there are no more than 7 digits before the decimal point."),
]


@pytest.mark.parametrize(("usd", "sentence"), [*BAD_AMOUNTS, ("20.01", "At most $20.00 of a top-up")])
def test_an_amount_that_cannot_be_refunded_is_said_and_moves_nothing(stripe, client, usd, sentence):
    bea = person("bea")
    top_up = top_up_create(user=bea, amount_microusd=20 * USD, idempotency_key="k")
    stripe.world.pay(top_up.session_id)
    stripe.deliver(client)
    path = f"/payments/top-ups/{top_up.pk}/refund/"
    assert sentence in said(browser_of(bea).post(path, {"usd": usd, "key": "r"}, follow=True))
    assert (wallet_balance(bea), Refund.objects.count()) == (20 * USD, 0)


@pytest.mark.parametrize(
    ("usd", "sentence"),
    [*BAD_AMOUNTS, ("4", "The amount must be from $5.00"), ("81", "$80.00 of your earnings")],
)
def test_an_amount_that_cannot_be_paid_out_is_said_and_moves_nothing(stripe, usd, sentence):
    otto = ready(stripe, earner())
    assert sentence in said(browser_of(otto).post("/payouts/ask/", {"usd": usd, "key": "k"}, follow=True))
    assert (earnings_balance(otto), Payout.objects.count()) == (80 * USD, 0)


@pytest.mark.parametrize("key", [{}, {"key": ""}, {"key": "x" * 81}])
def test_a_form_without_its_key_is_said_to_be_none_and_moves_nothing(stripe, client, key):
    otto = ready(stripe, earner())
    top_up = top_up_create(user=otto, amount_microusd=20 * USD, idempotency_key="k")
    stripe.world.pay(top_up.session_id)
    stripe.deliver(client)
    browser = browser_of(otto)
    for path in ("/payouts/ask/", f"/payments/top-ups/{top_up.pk}/refund/"):
        assert "open the page again" in said(browser.post(path, {"usd": "10", **key}, follow=True))
    page = browser.post("/payments/", {"usd": "10", **key})
    assert page.status_code == 400
    assert "open the page again" in page.content.decode()
    assert (earnings_balance(otto), wallet_balance(otto), TopUp.objects.count()) == (80 * USD, 20 * USD, 1)


@pytest.mark.parametrize(
    ("typed", "field", "words"),
    [
        ({"threshold": "-1"}, "threshold", "greater than or equal to 0"),
        ({"amount": "25.001"}, "amount", "no more than 2 decimal places"),
        ({"cap": ""}, "cap", "required"),
        ({"agreed": ""}, "agreed", "your clear yes"),
    ],
)
def test_terms_that_cannot_be_are_said_beside_their_field(stripe, typed, field, words):
    form = {"threshold": "10", "amount": "25", "cap": "100", "agreed": "on"}
    answer = browser_of(person("bea")).post("/payments/automatic/", form | typed)
    assert answer.status_code == 400
    assert words in " ".join(answer.context["form"].errors[field])
    assert AutoTopUp.objects.count() == 0


def test_terms_that_the_service_refuses_are_said_in_the_words_of_the_page(stripe):
    form = {"threshold": "10", "amount": "25", "cap": "20", "agreed": "on"}
    answer = browser_of(person("bea")).post("/payments/automatic/", form)
    assert answer.status_code == 400
    words = "The most in one month must be at least one top-up, the amount."
    assert answer.context["form"].errors == {"cap": [words]}
    assert AutoTopUp.objects.count() == 0


def test_an_owner_is_led_from_nothing_to_a_payout_that_is_paid(stripe, client):
    otto = earner()
    browser = browser_of(otto)
    assert "choose your country" in browser.get("/payouts/").content.decode()
    assert "Now set it up" in said(browser.post("/payouts/account/", {"country": "US"}, follow=True))
    away = browser.get("/payouts/refresh/")
    assert away["Location"].startswith("https://connect.stripe.com/")
    stripe.world.onboard(otto.payout_account.stripe_id)
    stripe.world.balance_cents = 100_000
    page = browser.get("/payouts/return/", follow=True).content.decode()
    assert "You can be paid out." in page
    form = {"usd": "50", "key": key_on(browser, "/payouts/")}
    for _ in range(2):
        answer = browser.post("/payouts/ask/", form, follow=True)
    assert "on its way" in said(answer)
    assert earnings_balance(otto) == 30 * USD
    payments_advance(now=utc_now())
    payout = Payout.objects.get()
    stripe.world.bank_refuses(payout.bank_payout_id)
    stripe.deliver(client)
    assert "waits in your account" in browser.get("/payouts/").content.decode()
    assert "again" in said(browser.post(f"/payouts/{payout.pk}/again/", follow=True))
    payments_advance(now=utc_now())
    payout.refresh_from_db()
    stripe.world.bank_takes(payout.bank_payout_id)
    stripe.deliver(client)
    assert "Paid" in browser.get("/payouts/").content.decode()


def test_what_is_refused_is_said_on_the_page(stripe):
    otto = ready(stripe, earner(usd=4))
    browser = browser_of(otto)
    assert "least that can be paid out in your country is $5.00" in browser.get("/payouts/").content.decode()
    assert "from $5.00" in said(browser.post("/payouts/ask/", {"usd": "4", "key": "k"}, follow=True))
    assert "countries" in said(browser.post("/payouts/account/", {"country": "KP"}, follow=True))
    browser.post("/payouts/weekly/", {"weekly": "yes"})
    payments_advance(now=utc_now())
    assert "Last Monday it was not" in browser.get("/payouts/").content.decode()
    browser.post("/payouts/weekly/", {"weekly": "no"})
    assert "Pay out every Monday" in browser.get("/payouts/").content.decode()


def test_an_account_that_stripe_does_not_open_is_said_on_the_page(stripe):
    stripe.world.connects = False
    browser = browser_of(earner())
    answer = browser.post("/payouts/account/", {"country": "US"}, follow=True)
    assert "Stripe does not open an account for you here (feature_not_enabled)" in said(answer)
    assert "Where your bank is" in answer.content.decode()


def test_without_a_key_of_stripe_the_pages_say_so(settings):
    settings.STRIPE_SECRET_KEY = ""
    otto = earner()
    earn(otto, usd=1, label="new", earned_at=utc_now())
    browser = browser_of(otto)
    assert "takes no real money" in browser.get("/payments/").content.decode()
    assert "pays no real money" in browser.get("/payouts/").content.decode()
    answer = browser.post("/payments/", {"usd": "20", "key": "k"})
    assert (answer.status_code, TopUp.objects.count()) == (503, 0)
    assert "takes no real money" in answer.content.decode()
    assert "no real money" in said(browser.post("/payouts/account/", {"country": "US"}, follow=True))


def test_another_persons_payment_and_payout_are_not_found(stripe):
    otto = ready(stripe, earner())
    browser_of(otto).post("/payouts/ask/", {"usd": "50", "key": "k"})
    browser_of(otto).post("/payments/", {"usd": "20", "key": "k"})
    other = browser_of(person("bob"))
    top_up, payout = TopUp.objects.get(), Payout.objects.get()
    assert other.get(f"/payments/top-ups/{top_up.pk}/").status_code == 404
    assert other.post(f"/payments/top-ups/{top_up.pk}/refund/", {"usd": "5", "key": "k"}).status_code == 404
    assert other.post(f"/payouts/{payout.pk}/again/").status_code == 404


@pytest.mark.parametrize("path", ["/payments/", "/payouts/", "/payouts/refresh/"])
def test_a_stranger_is_asked_to_log_in(client, path):
    assert "/log-in/" in client.get(path)["Location"]
