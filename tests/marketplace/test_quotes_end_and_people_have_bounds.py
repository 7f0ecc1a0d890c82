"""A quote is kept for a stated time; datasets and quotes of one person are bounded."""

from datetime import timedelta

import pytest
from django.test import Client

from blobs.models import BlobHold
from common.clock import utc_now
from marketplace.datasets import services as dataset_services
from marketplace.errors import DatasetLimit, JobConflict, QuotedJobLimit, QuoteExpired
from marketplace.jobs import services
from marketplace.jobs.expiry import quotes_expire
from marketplace.jobs.services import job_cancel, job_confirm
from marketplace.limits import QUOTE_VALID
from marketplace.models import Dataset, Job
from tests.marketplace.cast import (
    buyer,
    dataset_of_clusters,
    dataset_of_numbers,
    quoted_job,
    running_job,
)
from tests.marketplace.pages.reading import text_of

pytestmark = pytest.mark.django_db
MINUTE = timedelta(minutes=1)


def holds_of(job: Job) -> int:
    return BlobHold.objects.filter(holder=job.reference).count()


def test_a_quote_says_how_long_it_is_valid_on_its_page_and_in_the_api():
    bea = buyer()
    job = quoted_job(bea)
    assert abs(job.quote_expires_at - job.created_at - QUOTE_VALID) < MINUTE
    client = Client()
    client.force_login(bea)
    assert "Valid until" in text_of(client.get(f"/jobs/{job.pk}/"))
    assert "expires_at" in client.get(f"/api/jobs/{job.pk}/").json()["job"]["quote"]


def test_a_quote_whose_time_is_over_is_dropped_with_its_blobs_and_running_jobs_stay():
    bea = buyer()
    running = running_job(bea)
    quoted = quoted_job(bea, dataset=running.dataset, seed=1)
    assert quotes_expire(now=quoted.quote_expires_at - MINUTE) == 0
    assert holds_of(quoted)
    assert quotes_expire(now=quoted.quote_expires_at) == 1
    quoted.refresh_from_db()
    running.refresh_from_db()
    assert (quoted.state, quoted.ended_because, holds_of(quoted)) == ("cancelled", "quote_expired", 0)
    assert "within 7 days" in quoted.ended_message
    assert running.state == Job.State.RUNNING
    assert holds_of(running)
    assert quotes_expire(now=quoted.quote_expires_at) == 0


def test_one_pass_drops_no_more_than_it_may():
    bea = buyer()
    first = quoted_job(bea)
    quoted_job(bea, dataset=first.dataset, seed=1)
    later = utc_now() + 2 * QUOTE_VALID
    assert [quotes_expire(now=later, at_most=1) for _ in range(3)] == [1, 1, 0]


def test_it_cannot_be_confirmed_late_even_before_it_is_swept():
    bea = buyer()
    job = quoted_job(bea)
    with pytest.raises(QuoteExpired, match="Create the job anew"):
        job_confirm(owner=bea, job_id=job.pk, now=job.quote_expires_at)
    job.refresh_from_db()
    assert (job.state, holds_of(job)) == (Job.State.CANCELLED, 0)
    with pytest.raises(JobConflict):
        job_confirm(owner=bea, job_id=job.pk)


def test_quotes_that_wait_are_bounded_and_making_room_lets_the_next_one_in(monkeypatch):
    monkeypatch.setattr(services, "QUOTED_JOBS_MAX", 1)
    bea, bob = buyer(), buyer("bob")
    job = quoted_job(bea)
    with pytest.raises(QuotedJobLimit, match="Confirm or cancel one"):
        quoted_job(bea, dataset=job.dataset, seed=1)
    quoted_job(bob)
    job_cancel(owner=bea, job_id=job.pk)
    quoted_job(bea, dataset=job.dataset, seed=1)


def test_a_quote_that_came_in_meanwhile_counts_too(monkeypatch):
    monkeypatch.setattr(services, "QUOTED_JOBS_MAX", 1)
    bea = buyer()
    job = quoted_job(bea)
    real, calls = services._check_quota, []

    def sees_it_the_second_time(owner):
        calls.append(owner)
        if len(calls) == 2:
            real(owner)

    monkeypatch.setattr(services, "_check_quota", sees_it_the_second_time)
    with pytest.raises(QuotedJobLimit):
        quoted_job(bea, dataset=job.dataset, seed=1)
    assert Job.objects.count() == 1
    assert BlobHold.objects.filter(holder__startswith="job:").count() == holds_of(job)


def test_datasets_are_bounded_but_the_same_data_again_is_no_new_one(monkeypatch):
    monkeypatch.setattr(dataset_services, "DATASETS_MAX", 1)
    bea = buyer()
    dataset = dataset_of_clusters(bea)
    assert dataset_of_clusters(bea) == dataset
    with pytest.raises(DatasetLimit, match="Delete one"):
        dataset_of_numbers(bea)
    assert Dataset.objects.count() == 1
    assert BlobHold.objects.filter(holder__startswith="dataset:").count() == 1
