"""A change of prices reaches the next quote, and never one that was made, confirmed or not."""

from datetime import timedelta
from typing import Any

import pytest

from accounts.models import User
from billing.selectors import earnings_balance, fees_balance
from billing.services import fee_set, rate_set
from common.clock import utc_now
from marketplace.jobs.services import job_confirm
from marketplace.jobs.settling import settle_pending
from scheduler.models import Lease
from tests.marketplace.cast import buyer, person, priced_job, quoted_job, round_closes, run_ends, run_of

pytestmark = pytest.mark.django_db


def prices_change() -> None:
    given: Any = {"operator": User.objects.get(is_staff=True), "reason": "demand.", "now": utc_now()}
    rate_set(device_class="laptop-cpu", microusd_per_gpu_second=900, **given)
    fee_set(basis_points=5_000, **given)


def test_a_change_in_the_middle_of_a_run_touches_nothing_of_it():
    bea, ann = buyer(), person("ann")
    job = priced_job(bea)
    round_closes(job, {ann: 100})
    settle_pending()
    prices_change()
    round_closes(job, {ann: 100})
    run_ends(job)
    settle_pending()
    assert (earnings_balance(ann), fees_balance()) == (160, 40)
    assert run_of(job).rates["laptop-cpu"] == job.rates["laptop-cpu"] == 100
    assert set(Lease.objects.values_list("fee_basis_points", flat=True)) == {2_000}


def test_a_quote_is_kept_until_it_is_confirmed_and_the_next_one_is_new():
    bea = buyer()
    quoted = quoted_job(bea)
    prices_change()
    run = run_of(job_confirm(owner=bea, job_id=quoted.pk))
    assert (run.rates["laptop-cpu"], run.fee_basis_points) == (100, 2_000)
    dearer = quoted_job(bea, dataset=quoted.dataset, seed=1)
    assert (dearer.rates["laptop-cpu"], dearer.fee_basis_points) == (900, 5_000)
    assert dearer.quote_low_microusd > quoted.quote_low_microusd


def test_a_price_that_begins_later_is_not_quoted_yet():
    bea = buyer()
    rate_set(
        device_class="laptop-cpu",
        microusd_per_gpu_second=900,
        operator=User.objects.get(is_staff=True),
        reason="demand.",
        now=utc_now(),
        valid_from=utc_now() + timedelta(hours=1),
    )
    assert quoted_job(bea).rates["laptop-cpu"] == 100
