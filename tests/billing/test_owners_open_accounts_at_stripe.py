"""An owner opens an account, sets it up on Stripe's pages, and is told in words how it stands."""

from datetime import UTC, datetime, timedelta

import pytest

from billing.domain.capability import in_words
from billing.domain.countries import COUNTRIES
from billing.due import payments_advance
from billing.errors import (
    CountryUnsupported,
    PayoutAccountMissing,
    PayoutAccountRefused,
    StripeUnavailable,
)
from billing.models import Payout, PayoutAccount
from billing.selectors import earnings_balance, ledger_differences
from billing.services import onboarding_link, payout_account_open, payout_account_sync, payout_account_weekly
from tests.billing.cast import USD, person
from tests.billing.owners import earn, earner, ready
from tests.fake_stripe import Fault

pytestmark = pytest.mark.django_db
MONDAY = datetime(2026, 12, 7, 6, tzinfo=UTC)


def test_an_account_is_opened_once_pays_by_hand_and_is_set_up_on_stripes_pages(stripe):
    otto = person("otto")
    account = payout_account_open(user=otto, country="de")
    payout_account_open(user=otto, country="de")
    assert len(stripe.world.of("v2.core.account")) == 1
    assert stripe.world.objects[account.stripe_id]["schedule"] == "manual"
    assert account.pays_by_hand
    assert onboarding_link(user=otto).startswith("https://connect.stripe.com/setup/")
    assert "continue the set-up" in in_words(account.transfers_status, account.status_code)


@pytest.mark.parametrize(("path", "kind"), [("/v2/core/accounts", "done"), ("/v1/balance_settings", "lost")])
def test_an_account_that_got_no_answer_is_the_same_one_when_asked_again(stripe, path, kind):
    otto = person("otto")
    stripe.faults.append(Fault(path, kind))
    with pytest.raises(StripeUnavailable):
        payout_account_open(user=otto, country="US")
    assert payout_account_open(user=otto, country="US").pays_by_hand
    assert len(stripe.world.of("v2.core.account")) == 1


@pytest.mark.parametrize("country", ["KP", "", "zz", "Germany"])
def test_an_owner_elsewhere_is_told_before_anything_is_asked(stripe, country):
    otto = earner()
    with pytest.raises(CountryUnsupported, match="balance is kept for you") as refused:
        payout_account_open(user=otto, country=country)
    assert refused.value.field == "country"
    assert (stripe.requests, PayoutAccount.objects.count()) == ([], 0)
    assert earnings_balance(otto) == 80 * USD


def test_a_platform_without_connect_is_said_on_the_button_and_can_be_put_right(stripe):
    otto = earner()
    stripe.world.connects = False
    for _ in range(2):
        with pytest.raises(PayoutAccountRefused, match=r"feature_not_enabled.*kept for you.*operator"):
            payout_account_open(user=otto, country="US")
    assert (PayoutAccount.objects.get().transfers_status, earnings_balance(otto)) == ("unopened", 80 * USD)
    stripe.world.connects = True
    assert payout_account_open(user=otto, country="FR").country == "FR"
    assert len(stripe.world.of("v2.core.account")) == 1


def test_the_country_of_an_account_that_may_be_open_stays(stripe):
    otto = person("otto")
    stripe.faults.append(Fault("/v2/core/accounts", "done"))
    with pytest.raises(StripeUnavailable):
        payout_account_open(user=otto, country="US")
    assert payout_account_open(user=otto, country="FR").country == "US"
    assert len(stripe.world.of("v2.core.account")) == 1


def test_there_is_no_link_without_an_account(stripe):
    with pytest.raises(PayoutAccountMissing):
        onboarding_link(user=person("otto"))


def test_stripes_word_is_asked_for_when_it_says_that_something_changed(stripe, client):
    otto = person("otto")
    account = payout_account_open(user=otto, country="US")
    stripe.world.onboard(account.stripe_id, "restricted", "requirements_pending_verification")
    stripe.world.onboard(account.stripe_id)
    late, early = stripe.untold()[-2:][::-1]
    stripe.deliver(client, [late, early, late])
    account.refresh_from_db()
    assert account.transfers_status == "active"


def test_an_account_of_another_site_is_none_of_ours(stripe):
    assert not payout_account_sync(stripe_id="acct_of_another_site")


def test_who_closes_an_account_can_open_another(stripe, client):
    otto = ready(stripe, earner())
    first = otto.payout_account.stripe_id
    stripe.world.close(first)
    stripe.deliver(client)
    assert PayoutAccount.objects.get().transfers_status == "closed"
    second = payout_account_open(user=otto, country="FR")
    assert (second.stripe_id != first, second.country) == (True, "FR")


@pytest.mark.parametrize(
    "status", ["unopened", "pending", "active", "restricted", "rejected", "unsupported", "closed"]
)
def test_every_status_has_a_sentence_of_its_own(status):
    assert in_words(status).endswith(".")


def test_every_country_has_a_least_amount():
    assert len(COUNTRIES) > 40
    assert min(country.minimum_microusd for country in COUNTRIES.values()) == 5 * USD


def test_a_weekly_payout_is_asked_for_once_a_week(stripe):
    otto = ready(stripe, earner())
    payout_account_weekly(user=otto, weekly=True)
    for hours in (0, 1, 30, 24 * 6):
        payments_advance(now=MONDAY + timedelta(hours=hours))
    assert Payout.objects.count() == 1
    earn(otto, usd=10, label="more", earned_at=MONDAY - timedelta(days=10))
    payments_advance(now=MONDAY + timedelta(days=7))
    assert sorted(Payout.objects.values_list("amount_microusd", flat=True)) == [10 * USD, 80 * USD]


def test_a_week_that_pays_nothing_says_why_and_is_not_tried_again(stripe):
    otto = ready(stripe, earner(usd=4))
    payout_account_weekly(user=otto, weekly=True)
    payments_advance(now=MONDAY)
    account = PayoutAccount.objects.get()
    assert "from $5.00" in account.weekly_note
    earn(otto, usd=4, label="more", earned_at=MONDAY - timedelta(days=10))
    payments_advance(now=MONDAY + timedelta(hours=1))
    assert Payout.objects.count() == 0
    payments_advance(now=MONDAY + timedelta(days=7))
    assert Payout.objects.count() == 1


def test_a_week_that_stripe_refuses_returns_the_money_and_is_asked_for_once_a_week(stripe):
    """A platform whose balance at Stripe is negative: no transfer is made that would have to be reversed."""
    otto = ready(stripe, earner())
    stripe.world.balance_cents = -5_000
    payout_account_weekly(user=otto, weekly=True)
    for day in range(21):
        for hours in (6, 7):
            payments_advance(now=MONDAY + timedelta(days=day, hours=hours))
    assert list(Payout.objects.values_list("state", flat=True)) == [Payout.State.RETURNED] * 3
    assert all("own balance at Stripe" in payout.because for payout in Payout.objects.all())
    assert [request.path for request in stripe.requests].count("/v1/transfers") == 3
    assert (stripe.world.of("transfer"), stripe.world.balance_cents) == ([], -5_000)
    assert (earnings_balance(otto), ledger_differences()) == (80 * USD, [])


def test_an_owners_negative_balance_at_stripe_is_not_paid_into_again_and_again(stripe):
    otto = ready(stripe, earner())
    account = otto.payout_account.stripe_id
    stripe.world.account_cents[account] = -10_000  # Stripe took back what it had paid too much
    payout_account_weekly(user=otto, weekly=True)
    for day in range(21):
        payments_advance(now=MONDAY + timedelta(days=day))
    payout = Payout.objects.get()
    assert (payout.state, earnings_balance(otto)) == (Payout.State.FAILED, 0)
    assert "balance_insufficient" in payout.because
    assert stripe.world.account_cents[account] == -10_000 + 7_975
    assert len(stripe.world.of("transfer")) == 1
    assert ledger_differences() == []


def test_weekly_payouts_need_an_account(stripe):
    with pytest.raises(PayoutAccountMissing):
        payout_account_weekly(user=person("otto"), weekly=True)
