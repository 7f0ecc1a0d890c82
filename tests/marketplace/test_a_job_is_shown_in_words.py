"""What a job's page is made of: its state in words, why it waits, rounds, spend and pace."""

from datetime import UTC, datetime, timedelta

import pytest

from marketplace.jobs.services import job_cancel
from marketplace.jobs.settling import settle_pending
from marketplace.models import Job
from marketplace.selectors import job_view
from scheduler.models import Run
from tests.marketplace.cast import (
    buyer,
    dataset_of_numbers,
    person,
    priced_job,
    quoted_job,
    round_closes,
    run_ends,
)

pytestmark = pytest.mark.django_db
NOON = datetime(2026, 3, 3, 12, tzinfo=UTC)


def test_a_quoted_job_waits_for_its_buyer():
    view = job_view(quoted_job(buyer()))
    assert (view.state_words, view.waiting) == (
        "quoted, not confirmed",
        "Waits for you to confirm its quote.",
    )
    assert (view.can_confirm, view.can_cancel, view.rounds, view.downloads) == (True, True, (), ())


def test_a_quoted_job_says_what_the_wallet_lacks():
    job = quoted_job(buyer(wallet_microusd=0))
    Job.objects.filter(pk=job.pk).update(hold_microusd=1_250_000)
    job.refresh_from_db()
    assert job_view(job).waiting == "Waits for $1.25 more in your wallet, and for you to confirm its quote."


def test_a_running_job_passes_on_why_the_scheduler_waits():
    job = priced_job(buyer())
    Run.objects.update(waiting="no_device_online")
    view = job_view(job)
    assert (view.state_words, view.can_confirm, view.can_cancel) == ("training", False, True)
    assert view.waiting == "No device that can do this work is online."


def test_rounds_spend_and_pace_are_shown():
    job = priced_job(buyer(), epochs=200)
    round_closes(job, {person("ann"): 100})
    settle_pending()
    view = job_view(job, now=NOON)
    assert [(r.number, r.state, r.validation_metric) for r in view.rounds] == [(1, "closed", 0.9)]
    assert (view.metric, view.latest_metric, view.rounds_done) == ("accuracy", 0.9, 1)
    assert (view.spent_microusd, view.gpu_seconds, view.samples) == (100, 2.0, 500 * 8)
    assert view.hold_left_microusd == job.hold_microusd - 100
    assert view.eta == NOON + timedelta(seconds=10) * (job.rounds_planned - 1)


def test_a_regression_is_judged_by_its_loss():
    owner = buyer()
    assert job_view(quoted_job(owner, dataset_of_numbers(owner))).metric == "loss"


def test_a_cancelled_job_stops_then_settles_then_ends():
    owner = buyer()
    job = job_cancel(owner=owner, job_id=priced_job(owner).id)
    assert (job_view(job).state_words, job_view(job).can_cancel) == ("stopping", False)
    run_ends(job, Run.State.CANCELLED, because="cancelled")
    assert (job_view(job).state_words, job_view(job).waiting) == ("settling the bill", None)
    settle_pending()
    job.refresh_from_db()
    view = job_view(job)
    assert (view.state_words, view.eta, view.hold_left_microusd) == ("cancelled", None, 0)
