"""Prices are dated rows: in force from their time on, set by operators with a reason, never changed."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import IntegrityError, transaction
from hypothesis import given
from hypothesis import strategies as st

from accounts.domain.device_classes import DEVICE_CLASSES
from billing.domain.rates import OPENING_RATES, Tariff, device_estimate, newest_by_class
from billing.errors import EstimateInvalid, NotAnOperator, RateInvalid, ReasonInvalid
from billing.models import Fee, OperatorAction, Rate
from billing.selectors import tariff_at
from billing.services import fee_set, rate_set
from common.clock import utc_now
from tests.billing.cast import operator, person

NOW = datetime(2027, 1, 4, 12, 0, tzinfo=UTC)
LATER = NOW + timedelta(days=7)


def test_every_class_of_device_begins_with_a_rate_of_whole_micro_usd():
    assert set(OPENING_RATES) == set(DEVICE_CLASSES)
    assert all(isinstance(rate, int) and rate > 0 for rate in OPENING_RATES.values())


def test_a_quicker_class_earns_more_by_the_second_and_is_cheaper_for_the_same_work():
    by_speed = sorted(DEVICE_CLASSES.values(), key=lambda c: c.flops_per_second)
    rates = [OPENING_RATES[c.key] for c in by_speed]
    prices_of_work = [OPENING_RATES[c.key] / c.flops_per_second for c in by_speed]
    assert rates == sorted(rates)
    assert prices_of_work == sorted(prices_of_work, reverse=True)


@pytest.mark.django_db
def test_a_new_site_begins_with_them_and_a_fee_of_a_fifth():
    assert tariff_at(NOW) == Tariff(rates=OPENING_RATES, fee_basis_points=2_000)


def raised(microusd: int = 500, *, start: datetime | None = LATER, **changes) -> Rate:
    given: Any = {"operator": operator(), "reason": "phones are in demand.", "now": NOW, **changes}
    return rate_set(device_class="phone-high", microusd_per_gpu_second=microusd, valid_from=start, **given)


@pytest.mark.django_db
def test_a_price_is_in_force_from_its_time_on():
    raised()
    fee_set(basis_points=1_500, operator=operator(), reason="a promise.", now=NOW, valid_from=LATER)
    before, after = tariff_at(LATER - timedelta(microseconds=1)), tariff_at(LATER)
    assert (before.rates["phone-high"], before.fee_basis_points) == (400, 2_000)
    assert (after.rates["phone-high"], after.fee_basis_points) == (500, 1_500)
    assert after.rates["laptop-cpu"] == 100


@pytest.mark.django_db
def test_whoever_sets_one_is_written_down_with_both_prices():
    raised()
    line = OperatorAction.objects.get()
    assert (line.action, line.subject, line.reason) == (
        "rate_set",
        "rate:phone-high",
        "phones are in demand.",
    )
    assert line.before == {"microusd_per_gpu_second": 400}
    assert line.after == {"microusd_per_gpu_second": 500, "valid_from": LATER.isoformat()}


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("changes", "refusal", "words"),
    [
        ({"start": NOW - timedelta(seconds=1)}, RateInvalid, "in the past"),
        ({"microusd": 0}, RateInvalid, "from 1 to"),
        ({"microusd": 10_000_001}, RateInvalid, "from 1 to"),
        ({"reason": " "}, ReasonInvalid, "say why"),
        ({"start": LATER, "microusd": 1}, None, ""),
    ],
)
def test_what_cannot_be_a_price_is_refused_and_nothing_is_written(changes, refusal, words):
    if refusal is None:
        raised(**changes)
        with pytest.raises(RateInvalid, match="at that very moment"):
            raised(**changes)
        assert Rate.objects.filter(device_class="phone-high").count() == 2
        return
    with pytest.raises(refusal, match=words):
        raised(**changes)
    assert not OperatorAction.objects.exists()
    assert Rate.objects.count() == len(OPENING_RATES)


@pytest.mark.django_db
def test_an_unknown_class_and_a_person_who_is_no_operator_are_refused():
    given: Any = {"operator": operator(), "reason": "a try.", "now": NOW}
    with pytest.raises(RateInvalid, match="'toaster' is unknown"):
        rate_set(device_class="toaster", microusd_per_gpu_second=1, **given)
    with pytest.raises(NotAnOperator):
        raised(operator=person("otto"))
    with pytest.raises(RateInvalid, match="from 0 to 10,000"):
        fee_set(basis_points=10_001, **given)


@pytest.mark.django_db
@pytest.mark.parametrize("model", [Rate, Fee])
def test_the_database_keeps_a_price_as_it_was(model):
    for change in (lambda: model.objects.update(reason="another"), lambda: model.objects.all().delete()):
        with pytest.raises(IntegrityError, match="append-only"), transaction.atomic():
            change()


@pytest.mark.django_db
def test_the_command_sets_rates_and_the_fee(capsys):
    operator()
    options = {"operator": "olive@example.org", "reason": "a new year."}
    call_command("set_rate", "laptop-gpu", "700", **options)
    call_command("set_rate", "fee", "1800", start=utc_now() + timedelta(days=1), **options)
    assert "laptop-gpu: 700 from" in capsys.readouterr().out
    assert tariff_at(utc_now()).rates["laptop-gpu"] == 700
    assert tariff_at(utc_now()).fee_basis_points == 2_000
    assert tariff_at(utc_now() + timedelta(days=2)).fee_basis_points == 1_800
    with pytest.raises(CommandError, match="nobody has the address"):
        call_command("set_rate", "fee", "1", operator="nobody@example.org", reason="x")
    with pytest.raises(CommandError, match="is unknown"):
        call_command("set_rate", "toaster", "1", **options)


@pytest.mark.django_db
def test_operators_set_a_price_in_the_admin_site(client):
    admin = operator()
    type(admin).objects.filter(pk=admin.pk).update(is_superuser=True)
    client.force_login(admin)
    form = {"device_class": "phone-entry", "microusd_per_gpu_second": "0", "reason": "spring."}
    page = client.post("/admin/billing/rate/add/", form)
    assert page.status_code == 200
    assert "from 1 to" in page.content.decode()
    assert (
        client.post("/admin/billing/rate/add/", {**form, "microusd_per_gpu_second": "160"}).status_code == 302
    )
    assert (
        client.post("/admin/billing/fee/add/", {"basis_points": "1900", "reason": "spring."}).status_code
        == 302
    )
    now = tariff_at(utc_now())
    assert (now.rates["phone-entry"], now.fee_basis_points) == (160, 1_900)
    assert set(OperatorAction.objects.values_list("action", "operator")) == {
        ("rate_set", admin.pk),
        ("fee_set", admin.pk),
    }
    row = Rate.objects.get(microusd_per_gpu_second=160)
    assert client.post(f"/admin/billing/rate/{row.pk}/change/", form).status_code == 403


@given(st.permutations([("a", NOW, 1), ("a", LATER, 2), ("b", NOW, 3)]))
def test_the_newest_row_of_a_class_counts_in_whatever_order_they_come(rows):
    assert newest_by_class(rows) == {"a": 2, "b": 3}


@given(
    device_class=st.sampled_from(sorted(DEVICE_CLASSES)),
    hours=st.floats(0.01, 24),
    fee=st.integers(0, 10_000),
    share=st.none() | st.floats(0, 1),
)
def test_an_estimate_is_a_range_within_what_a_buyer_pays(device_class, hours, fee, share):
    tariff = Tariff(rates=OPENING_RATES, fee_basis_points=fee)
    estimate = device_estimate(tariff, device_class=device_class, hours=hours, paid_share=share)
    assert 0 <= estimate.low_microusd <= estimate.high_microusd
    assert estimate.high_microusd <= hours * 3_600 * OPENING_RATES[device_class]
    assert "promise" in estimate.basis or share is None


def test_a_night_of_a_phone_is_its_rate_less_the_fee():
    tariff = Tariff(rates=OPENING_RATES, fee_basis_points=2_000)
    estimate = device_estimate(tariff, device_class="phone-high", hours=8, paid_share=0.25)
    assert (estimate.low_microusd, estimate.high_microusd) == (
        2_304_000,
        9_216_000,
    )  # 400 x 28,800 s less 20 %
    assert "25%" in estimate.basis


@pytest.mark.parametrize("hours", [0, -1, 24.1, float("nan"), float("inf")])
def test_hours_that_no_night_has_are_refused(hours):
    with pytest.raises(EstimateInvalid) as refused:
        device_estimate(Tariff(OPENING_RATES, 0), device_class="phone-high", hours=hours, paid_share=None)
    assert refused.value.field == "hours"
