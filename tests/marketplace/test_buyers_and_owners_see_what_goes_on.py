"""What a job's and an owner's page are made of: states in words, why a job waits, what a device does and earns."""

from datetime import UTC, datetime, timedelta

import pytest

from accounts.models import Device, IdleWindow
from common.clock import utc_now
from marketplace.jobs.services import job_cancel
from marketplace.jobs.settling import settle_pending
from marketplace.models import Job
from marketplace.selectors import job_view, owner_devices_view
from scheduler.models import Lease, Run
from tests.marketplace.cast import (
    buyer,
    dataset_of_numbers,
    person,
    priced_job,
    quoted_job,
    round_closes,
    run_ends,
    run_of,
)

pytestmark = pytest.mark.django_db
# A Tuesday.
NOON = datetime(2026, 3, 3, 12, tzinfo=UTC)
MIDNIGHT = datetime(2026, 3, 3, 23, tzinfo=UTC)


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


def device_of(owner, **changes) -> Device:
    """A device with a window from 22:00 to 07:00 every night, UTC."""
    for weekday in range(7):
        IdleWindow.objects.create(owner=owner, weekday=weekday, starts="22:00", ends="07:00")
    return Device.objects.create(owner=owner, name="Ann's phone", public_key=bytes(32), **changes)


def test_a_device_outside_its_window_says_when_it_opens():
    ann = person("ann")
    device_of(ann)
    (view,) = owner_devices_view(ann, now=NOON)
    assert view.state_words == "outside its idle windows: opens at 22:00"
    assert view.window_words == "opens at 22:00"


def test_a_device_in_its_window_is_ready_and_a_paused_one_is_not():
    ann = person("ann")
    device = device_of(ann)
    assert owner_devices_view(ann, now=MIDNIGHT)[0].state_words == "ready for work"
    Device.objects.filter(pk=device.pk).update(state=Device.State.PAUSED)
    assert owner_devices_view(ann, now=MIDNIGHT)[0].state_words == "paused by its owner"


def test_a_device_at_work_shows_its_step_and_nothing_of_the_buyer():
    ann = person("ann")
    device = device_of(ann)
    job = priced_job(buyer(), name="secret project")
    round_closes(job, {ann: 0})
    Lease.objects.update(device_id=device.id, state=Lease.State.RUNNING, step=120, ended_at=None)
    (view,) = owner_devices_view(ann)
    assert view.state_words == f"training, step 120 of {run_of(job).local_steps}"
    assert "secret" not in repr(view)


def test_a_device_shows_what_it_earned_lately_once_that_is_posted():
    ann, ben = person("ann"), person("ben")
    device = device_of(ann)
    job = priced_job(buyer())
    round_closes(job, {ann: 100, ben: 50})
    Lease.objects.filter(owner_id=ann.pk).update(device_id=device.id)
    assert owner_devices_view(ann)[0].earned_microusd == 0
    settle_pending()
    (view,) = owner_devices_view(ann)
    assert (view.earned_microusd, view.accepted, view.gpu_seconds) == (80, 1, 2.0)
    assert owner_devices_view(ann, now=utc_now() + timedelta(hours=25))[0].earned_microusd == 0


def test_removed_devices_and_other_owners_devices_are_not_shown():
    ann, ben = person("ann"), person("ben")
    device_of(ann, state=Device.State.REMOVED)
    assert owner_devices_view(ann) == []
    assert owner_devices_view(ben) == []
