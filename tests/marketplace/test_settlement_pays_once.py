"""Settlement: every accepted result is paid once, the rest returns, the model is delivered, come what may."""

import asyncio
import io
import logging

import pytest
import safetensors.torch
import torch

from billing.errors import HoldNotFound
from billing.selectors import (
    earnings_balance,
    fees_balance,
    hold_remaining,
    ledger_differences,
    wallet_balance,
)
from billing.services import hold_charge
from blobs.models import BlobHold
from blobs.selectors import blob_bytes, blob_open
from common import wake
from marketplace.catalogue.specs import Cnn
from marketplace.jobs import settling
from marketplace.jobs.artefacts import model_pt2
from marketplace.jobs.services import job_cancel
from marketplace.jobs.settling import settle_pending
from marketplace.models import Job
from marketplace.settlement import Settler
from scheduler.models import Run, RunNews
from tests.marketplace.cast import (
    USD,
    buyer,
    dataset_of_clusters,
    dataset_of_tokens,
    person,
    priced_job,
    round_closes,
    run_ends,
    run_of,
    small_gpt,
)

pytestmark = pytest.mark.django_db
MAX_BYTES = 10**7


def test_a_closed_round_pays_each_owner_less_the_fee():
    bea, ann, ben = buyer(), person("ann"), person("ben")
    job = priced_job(bea)
    round_closes(job, {ann: 100, ben: 50})
    assert settle_pending() == 1
    assert (earnings_balance(ann), earnings_balance(ben), fees_balance()) == (80, 40, 30)
    assert hold_remaining(job.reference) == job.hold_microusd - 150
    assert not RunNews.objects.exists()
    assert ledger_differences() == []


def test_results_too_small_to_price_are_free():
    bea, ann = buyer(), person("ann")
    job = priced_job(bea)
    round_closes(job, {ann: 0})
    settle_pending()
    assert hold_remaining(job.reference) == job.hold_microusd


def test_the_end_of_a_run_releases_the_rest_and_delivers_the_model():
    bea, ann = buyer(), person("ann")
    job = priced_job(bea)
    round_closes(job, {ann: 100})
    run_ends(job, message="All epochs are trained.")
    assert settle_pending() == 2
    job.refresh_from_db()
    assert (job.state, job.ended_because, job.ended_message) == (
        "finished",
        "epochs",
        "All epochs are trained.",
    )
    assert job.ended_at is not None
    assert wallet_balance(bea) == 100 * USD - 100
    assert earnings_balance(ann) == 80
    assert not BlobHold.objects.filter(holder=job.reference).exists()
    held = set(BlobHold.objects.filter(holder=job.model_holder).values_list("blob_id", flat=True))
    assert held == {job.model_safetensors_sha256, job.model_pt2_sha256}


def test_accepted_results_without_a_round_s_news_are_paid_at_the_end():
    bea, ann = buyer(), person("ann")
    job = priced_job(bea)
    round_closes(job, {ann: 100})
    RunNews.objects.all().delete()
    run_ends(job)
    settle_pending()
    assert earnings_balance(ann) == 80


@pytest.mark.parametrize(
    ("run_state", "job_state"),
    [(Run.State.CANCELLED, Job.State.CANCELLED), (Run.State.FAILED, Job.State.FAILED)],
)
def test_a_run_that_ends_early_is_paid_as_far_as_it_came(run_state, job_state):
    bea, ann = buyer(), person("ann")
    job = priced_job(bea)
    round_closes(job, {ann: 100})
    job_cancel(owner=bea, job_id=job.id)
    run_ends(job, run_state, because="cancelled")
    settle_pending()
    job.refresh_from_db()
    assert (job.state, wallet_balance(bea), earnings_balance(ann)) == (job_state, 100 * USD - 100, 80)
    assert job.model_pt2_sha256


def test_a_run_without_a_round_returns_everything_and_has_no_model():
    bea = buyer()
    job = priced_job(bea)
    run_ends(job, Run.State.CANCELLED, because="cancelled")
    settle_pending()
    job.refresh_from_db()
    assert (job.state, job.model_pt2_sha256, wallet_balance(bea)) == (Job.State.CANCELLED, "", 100 * USD)


def exported(job: Job) -> torch.nn.Module:
    with blob_open(job.model_pt2_sha256) as file:
        return torch.export.load(io.BytesIO(file.read())).module()


@pytest.mark.parametrize("kind", ["mlp", "cnn", "gpt"])
def test_the_model_loads_in_torch_by_one_line_for_any_number_of_rows(kind):
    bea, ann = buyer(), person("ann")
    batch, outputs = torch.randn(7, 4), [2]
    if kind == "gpt":
        job = priced_job(bea, dataset_of_tokens(bea), model=small_gpt())
        batch, outputs = torch.zeros(7, 8, dtype=torch.int64), [8, 11]
    elif kind == "cnn":
        job = priced_job(bea, model=Cnn(image=(1, 2, 2), channels=(4,)))
    else:
        job = priced_job(bea)
    round_closes(job, {ann: 1})
    run_ends(job)
    settle_pending()
    job.refresh_from_db()
    assert list(exported(job)(batch).shape) == [7, *outputs]
    assert list(exported(job)(batch[:1]).shape) == [1, *outputs]


def test_the_exported_model_has_the_last_round_s_parameters():
    bea, ann = buyer(), person("ann")
    job = priced_job(bea)
    round_closes(job, {ann: 1})
    run_ends(job)
    settle_pending()
    job.refresh_from_db()
    assert job.model_safetensors_sha256 == run_of(job).params_sha256
    parameters = safetensors.torch.load(blob_bytes(job.model_safetensors_sha256, max_bytes=MAX_BYTES))
    x = torch.randn(5, 4)
    hidden = torch.relu(x @ parameters["layers.1.weight"].T + parameters["layers.1.bias"])
    expected = hidden @ parameters["layers.3.weight"].T + parameters["layers.3.bias"]
    torch.testing.assert_close(exported(job)(x), expected)


STEPS = ["_claim", "_charge", "hold_release", "_model_store", "job_move", "blob_hold", "blob_release"]


class Killed(Exception):
    """The process dies here."""


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("moment", ["before", "after"])
def test_processes_that_die_one_after_another_at_every_step_pay_once_in_all(moment, monkeypatch, caplog):
    bea, ann, ben = buyer(), person("ann"), person("ben")
    job = priced_job(bea)
    for charge_microusd in (100, 70):
        round_closes(job, {ann: charge_microusd, ben: 10})
    run_ends(job)

    for step in STEPS:
        original = getattr(settling, step)

        def dying(*args, step=step, original=original, **kwargs):
            if moment == "after":
                original(*args, **kwargs)
            raise Killed(step)

        with monkeypatch.context() as patch, caplog.at_level(logging.CRITICAL):
            patch.setattr(settling, step, dying)
            settle_pending()
        job.refresh_from_db()
        assert job.state == Job.State.RUNNING, step
    assert settle_pending() == 1

    job.refresh_from_db()
    assert job.state == Job.State.FINISHED
    assert not RunNews.objects.exists()
    assert (earnings_balance(ann), earnings_balance(ben), fees_balance()) == (136, 16, 38)
    assert wallet_balance(bea) == 100 * USD - 190
    assert list(exported(job)(torch.randn(3, 4)).shape) == [3, 2]
    assert BlobHold.objects.filter(holder=job.model_holder).count() == 2
    assert ledger_differences() == []


def test_of_two_that_settle_one_end_at_once_the_first_one_s_model_is_kept(monkeypatch):
    bea, ann = buyer(), person("ann")
    job = priced_job(bea)
    round_closes(job, {ann: 100})
    run_ends(job)
    original = model_pt2

    def overtaken(job, parameters):
        monkeypatch.setattr(settling, "model_pt2", original)
        settle_pending()
        return b"another file of the same model"

    monkeypatch.setattr(settling, "model_pt2", overtaken)
    settle_pending()
    job.refresh_from_db()
    assert list(exported(job)(torch.randn(3, 4)).shape) == [3, 2]
    held = set(BlobHold.objects.filter(holder__startswith=job.reference).values_list("blob_id", flat=True))
    assert held == {job.model_safetensors_sha256, job.model_pt2_sha256}
    assert earnings_balance(ann) == 80


def test_one_job_s_trouble_holds_up_no_other_s(monkeypatch, caplog):
    bea, ann = buyer(), person("ann")
    dataset = dataset_of_clusters(bea)
    broken, sound = priced_job(bea, dataset), priced_job(bea, dataset)
    round_closes(broken, {ann: 100})
    round_closes(sound, {ann: 50})
    original = hold_charge

    def failing(*, reference, **rest):
        if reference == broken.reference:
            raise HoldNotFound(reference)
        return original(reference=reference, **rest)

    monkeypatch.setattr(settling, "hold_charge", failing)
    with caplog.at_level(logging.CRITICAL):
        assert settle_pending() == 1
    assert earnings_balance(ann) == 40
    assert RunNews.objects.get().payload["run_id"] == str(broken.run_id)


@pytest.mark.django_db(transaction=True)
async def test_the_loop_settles_when_woken(monkeypatch):
    passes: asyncio.Queue[int] = asyncio.Queue()
    loop = asyncio.get_running_loop()
    monkeypatch.setattr(
        "marketplace.tasks.settle_pending", lambda: loop.call_soon_threadsafe(passes.put_nowait, 1)
    )
    running = asyncio.create_task(Settler(look_every_s=60).run())
    await asyncio.wait_for(passes.get(), 5)
    await asyncio.to_thread(wake.wake, wake.SETTLER)
    await asyncio.wait_for(passes.get(), 5)
    running.cancel()


@pytest.mark.django_db(transaction=True)
async def test_the_loop_outlives_a_failed_pass_and_looks_by_itself(monkeypatch, caplog):
    outcomes = iter([OSError("disk full"), None])
    done = asyncio.Event()
    loop = asyncio.get_running_loop()

    def settle_once():
        outcome = next(outcomes)
        if outcome:
            raise outcome
        loop.call_soon_threadsafe(done.set)

    monkeypatch.setattr("marketplace.tasks.settle_pending", settle_once)
    with caplog.at_level(logging.CRITICAL):
        running = asyncio.create_task(Settler(look_every_s=0.01).run())
        await asyncio.wait_for(done.wait(), 5)
    running.cancel()


@pytest.mark.django_db(transaction=True)
async def test_the_loop_looks_by_itself_when_the_channel_layer_fails(monkeypatch):
    passes: asyncio.Queue[int] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    async def failing(channel: str) -> None:
        raise ConnectionError("redis is away")

    monkeypatch.setattr(wake.channel_layer(), "receive", failing)
    monkeypatch.setattr(
        "marketplace.tasks.settle_pending", lambda: loop.call_soon_threadsafe(passes.put_nowait, 1)
    )
    running = asyncio.create_task(Settler(look_every_s=0.01).run())
    for _ in range(3):
        await asyncio.wait_for(passes.get(), 5)
    running.cancel()
