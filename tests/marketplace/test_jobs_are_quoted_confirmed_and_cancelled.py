"""A job from its settings to its run: what is refused, what is held, what is stored."""

import io
import uuid

import numpy as np
import pytest
import safetensors.torch
import torch

from billing.errors import InsufficientFunds
from billing.models import Hold
from billing.selectors import hold_remaining, wallet_balance
from blobs.models import BlobHold
from blobs.selectors import blob_bytes
from marketplace.catalogue.builder import build
from marketplace.catalogue.specs import Cnn, Mlp
from marketplace.datasets.services import dataset_delete, dataset_upload
from marketplace.errors import (
    BudgetTooSmall,
    DatasetNotFound,
    JobConflict,
    JobInvalid,
    JobNotFound,
    ModelDoesNotFit,
    ModelSpecInvalid,
)
from marketplace.jobs import programs, services
from marketplace.jobs.preparation import run_data_prepare
from marketplace.jobs.programs import programs_capture
from marketplace.jobs.services import job_cancel, job_confirm, job_create
from marketplace.jobs.settings import Adam, AdamW, Sgd
from marketplace.jobs.transitions import TRANSITIONS, job_move
from marketplace.models import Dataset, Job
from metal_kernels.program.format import program_loads
from scheduler.artefacts import batch_rows
from scheduler.models import Inbox, Run
from tests.marketplace.cast import (
    USD,
    buyer,
    dataset_of_clusters,
    dataset_of_numbers,
    dataset_of_tokens,
    quoted_job,
    run_of,
    running_job,
    settings,
    small_gpt,
)
from tests.marketplace.files import npz

pytestmark = pytest.mark.django_db
MAX_BYTES = 10**7


def held_by(job: Job) -> set[str]:
    return set(BlobHold.objects.filter(holder=job.reference).values_list("blob_id", flat=True))


def evaluation_rows(job: Job) -> int:
    return batch_rows(program_loads(blob_bytes(job.forward_sha256, max_bytes=MAX_BYTES)))


def test_a_dataset_deleted_while_its_job_is_made_is_not_found(monkeypatch):
    owner = buyer()
    dataset = dataset_of_clusters(owner)
    capture = programs_capture

    def capture_slowly(*args, **kwargs):
        dataset_delete(owner=owner, dataset_id=dataset.id)
        return capture(*args, **kwargs)

    monkeypatch.setattr(services, "programs_capture", capture_slowly)
    with pytest.raises(DatasetNotFound):
        job_create(owner=owner, dataset_id=dataset.id, settings=settings())
    assert not Job.objects.exists()
    assert not BlobHold.objects.exists()


def test_a_quote_says_what_it_rests_on_and_holds_nothing():
    owner = buyer()
    job = quoted_job(owner)
    assert job.state == Job.State.QUOTED
    assert job.rounds_planned == 3  # 3 epochs of 96 rows by 2 shards of 6 steps of 8 rows
    assert 0 <= job.quote_low_microusd <= job.quote_high_microusd <= job.quote_cap_microusd
    assert job.hold_microusd == job.quote_cap_microusd < job.budget_microusd
    assert {entry["device_class"] for entry in job.quote_basis} == set(job.rates)
    assert wallet_balance(owner) == 100 * USD
    assert not Run.objects.exists()


def test_both_programs_are_stored_and_valid():
    job = quoted_job(buyer())
    step, forward = (
        program_loads(blob_bytes(sha256, max_bytes=MAX_BYTES), expected_sha256=sha256)
        for sha256 in (job.program_sha256, job.forward_sha256)
    )
    assert (step.kind, forward.kind) == ("training_step", "forward")
    assert held_by(job) == {job.program_sha256, job.forward_sha256}
    assert job.step_flops > 0
    assert job.memory_bytes > 0


@pytest.mark.parametrize(
    ("changes", "error", "field"),
    [
        ({"budget_microusd": 0}, JobInvalid, "budget_microusd"),
        ({"budget_microusd": -5}, JobInvalid, "budget_microusd"),
        ({"batch_size": 97}, JobInvalid, "batch_size"),
        ({"batch_size": 0}, JobInvalid, "batch_size"),
        ({"local_steps": 0}, JobInvalid, "local_steps"),
        ({"epochs": 0}, JobInvalid, "epochs"),
        ({"shards_per_round": 0}, JobInvalid, "shards_per_round"),
        ({"validation_split": 0.0}, JobInvalid, "validation_split"),
        ({"validation_split": float("nan")}, JobInvalid, "validation_split"),
        ({"target_metric": 1.5}, JobInvalid, "target_metric"),
        ({"loss": "mse"}, JobInvalid, "loss"),
        ({"loss": "huber"}, JobInvalid, "loss"),
        ({"loss": "hinge"}, JobInvalid, "loss"),
        ({"label_smoothing": 1.0}, JobInvalid, "label_smoothing"),
        ({"optimizer": Adam(clip_norm=0.0)}, JobInvalid, "optimizer.clip_norm"),
        ({"model": Mlp(hidden=(8,), dropout=0.95)}, ModelSpecInvalid, "model.dropout"),
        ({"seed": -1}, JobInvalid, "seed"),
        ({"delta_bits": 6}, JobInvalid, "delta_bits"),
        ({"name": ""}, JobInvalid, "name"),
        ({"optimizer": Sgd(learning_rate=-1.0)}, JobInvalid, "optimizer.learning_rate"),
        ({"optimizer": Sgd(learning_rate=float("inf"))}, JobInvalid, "optimizer.learning_rate"),
        ({"optimizer": Sgd(momentum=0.0, nesterov=True)}, JobInvalid, "optimizer.nesterov"),
        ({"model": Mlp(hidden=())}, ModelSpecInvalid, "model.hidden"),
        ({"model": Cnn(image=(1, 8, 8))}, ModelDoesNotFit, "model.image"),
        ({"model": small_gpt()}, ModelDoesNotFit, "model"),
        (
            {"model": Mlp(hidden=(4096, 4096)), "local_steps": 500, "budget_microusd": 1},
            BudgetTooSmall,
            "budget_microusd",
        ),
    ],
)
def test_a_setting_that_cannot_work_is_refused_by_name_and_nothing_is_stored(changes, error, field):
    owner = buyer()
    dataset = dataset_of_clusters(owner)
    with pytest.raises(error) as caught:
        job_create(owner=owner, dataset_id=dataset.id, settings=settings(**changes))
    assert caught.value.field == field
    assert not Job.objects.exists()
    assert not BlobHold.objects.filter(holder__startswith="job:").exists()


def test_what_a_buyer_may_choose_beyond_the_defaults_is_trained_and_kept():
    owner = buyer()
    job = quoted_job(
        owner,
        dataset_of_clusters(owner),
        model=Mlp(hidden=(8,), dropout=0.2),
        optimizer=Adam(clip_norm=1.0),
        label_smoothing=0.1,
        delta_bits=4,
    )
    assert (job.loss, job.label_smoothing) == ("cross_entropy", 0.1)
    assert (job.optimizer_spec["kind"], job.optimizer_spec["clip_norm"]) == ("adam", 1.0)
    step = program_loads(blob_bytes(job.program_sha256, max_bytes=10**7))
    assert (job.delta_bits, step.delta_bits) == (4, 4)
    assert [entry.key for entry in step.inputs("scalar")] == ["lr", "step", "seed_low", "seed_high"]


def test_numbers_can_be_trained_with_the_huber_loss_but_have_no_labels_to_smooth():
    owner = buyer()
    dataset = dataset_of_numbers(owner)
    assert quoted_job(owner, dataset, loss="huber").loss == "huber"
    with pytest.raises(JobInvalid, match="only cross_entropy smooths labels"):
        quoted_job(owner, dataset, label_smoothing=0.1)


def test_a_step_too_big_for_a_device_is_refused(monkeypatch):
    owner = buyer()
    memory_bytes = quoted_job(owner).memory_bytes
    monkeypatch.setattr(programs, "MAX_MEMORY_BYTES", memory_bytes // 2)
    with pytest.raises(JobInvalid, match="bytes on a device") as caught:
        quoted_job(owner, Dataset.objects.get())
    assert caught.value.field == "batch_size"


def test_a_step_beyond_what_a_program_may_hold_is_refused():
    owner = buyer()
    data = npz(inputs=np.zeros((4, 1, 512, 512), np.uint8), targets=np.arange(4) % 2)
    photos, _ = dataset_upload(owner=owner, name="photos", file=io.BytesIO(data), file_name="p.npz")
    with pytest.raises(JobInvalid, match="too large for a device") as caught:
        quoted_job(owner, photos, model=Cnn(image=(1, 512, 512), channels=(512,)), batch_size=3)
    assert caught.value.field == "batch_size"


def test_a_model_of_much_memory_is_evaluated_by_few_rows_at_once(monkeypatch):
    owner = buyer()
    usual = evaluation_rows(quoted_job(owner))
    monkeypatch.setattr(programs, "MAX_EVALUATION_BYTES", 1)
    assert usual > 1
    assert evaluation_rows(quoted_job(owner, Dataset.objects.get())) == 1


def test_someone_elses_dataset_makes_no_job():
    dataset = dataset_of_clusters(buyer("ben"))
    with pytest.raises(DatasetNotFound):
        job_create(owner=buyer("bea"), dataset_id=dataset.id, settings=settings())


def test_confirming_holds_the_funds_and_starts_the_run():
    owner = buyer()
    job = running_job(owner)
    run = run_of(job)
    assert job.state == Job.State.RUNNING
    assert hold_remaining(job.reference) == job.hold_microusd
    assert wallet_balance(owner) == 100 * USD - job.hold_microusd
    assert (run.buyer_id, run.budget_microusd, run.rounds_planned) == (owner.pk, job.hold_microusd, 3)
    assert run.metric == "accuracy"
    assert Inbox.objects.filter(kind="RunAdded", payload__run_id=str(run.pk)).exists()


def test_the_run_gets_slices_a_validation_split_and_seeded_parameters():
    job = running_job(buyer())
    run = run_of(job)
    slices = [safetensors.torch.load(blob_bytes(s["sha256"], max_bytes=MAX_BYTES)) for s in run.slices]
    validation = safetensors.torch.load(blob_bytes(run.validation_sha256, max_bytes=MAX_BYTES))
    assert [s["rows"] for s in run.slices] == [len(data["inputs"]) for data in slices] == [48, 48]
    assert validation["inputs"].shape == (24, 4)
    rows = torch.cat([data["inputs"] for data in (*slices, validation)])
    assert len({tuple(row) for row in rows.tolist()}) == 120
    parameters = safetensors.torch.load(blob_bytes(run.initial_params_sha256, max_bytes=MAX_BYTES))
    module = build(Mlp(hidden=(16,)), input_shape=(4,), outputs=2, seed=job.seed)
    assert all(torch.equal(parameters[name], tensor) for name, tensor in module.state_dict().items())
    needed = {run.program_sha256, run.forward_sha256, run.validation_sha256, run.initial_params_sha256}
    assert held_by(job) == needed | {s["sha256"] for s in run.slices}


@pytest.mark.parametrize("kind", ["tokens", "numbers"])
def test_every_kind_of_dataset_can_be_trained_on(kind):
    owner = buyer()
    if kind == "tokens":
        job = quoted_job(owner, dataset_of_tokens(owner), model=small_gpt(), optimizer=AdamW())
    else:
        job = quoted_job(owner, dataset_of_numbers(owner), model=Mlp(hidden=(8,)), target_metric=0.01)
    job = job_confirm(owner=owner, job_id=job.id)
    assert run_of(job).metric == "loss"


def test_confirming_twice_is_confirming_once():
    owner = buyer()
    job = running_job(owner)
    again = job_confirm(owner=owner, job_id=job.id)
    assert again.run_id == job.run_id
    assert Run.objects.count() == 1
    assert Hold.objects.count() == 1


def test_a_wallet_too_light_starts_nothing():
    owner = buyer(wallet_microusd=0)
    job = quoted_job(owner)
    with pytest.raises(InsufficientFunds):
        job_confirm(owner=owner, job_id=job.id)
    job.refresh_from_db()
    assert (job.state, job.run_id) == (Job.State.QUOTED, None)
    assert not Run.objects.exists()
    assert not Hold.objects.exists()


def test_the_hold_is_the_budget_where_that_is_less_than_the_cap():
    owner = buyer()
    dataset = dataset_of_clusters(owner)
    cap = quoted_job(owner, dataset).quote_cap_microusd
    job = quoted_job(owner, dataset, budget_microusd=cap - 1)
    assert job.hold_microusd == cap - 1


def test_a_quoted_job_is_cancelled_at_once():
    owner = buyer()
    job = job_cancel(owner=owner, job_id=quoted_job(owner).id)
    assert (job.state, job.ended_because) == (Job.State.CANCELLED, "cancelled")
    assert held_by(job) == set()
    assert job_cancel(owner=owner, job_id=job.id).state == Job.State.CANCELLED
    with pytest.raises(JobConflict):
        job_confirm(owner=owner, job_id=job.id)


def test_a_job_cancelled_while_it_is_being_confirmed_keeps_nothing(monkeypatch):
    owner = buyer()
    job = quoted_job(owner)
    original = run_data_prepare

    def overtaken(job):
        data = original(job)
        job_cancel(owner=owner, job_id=job.id)
        return data

    monkeypatch.setattr(services, "run_data_prepare", overtaken)
    with pytest.raises(JobConflict):
        job_confirm(owner=owner, job_id=job.id)
    assert held_by(job) == set()
    assert not Run.objects.exists()
    assert wallet_balance(owner) == 100 * USD


def test_a_job_confirmed_twice_at_once_starts_one_run(monkeypatch):
    owner = buyer()
    job = quoted_job(owner)
    original = run_data_prepare

    def overtaken(job):
        data = original(job)
        monkeypatch.setattr(services, "run_data_prepare", original)
        job_confirm(owner=owner, job_id=job.id)
        return data

    monkeypatch.setattr(services, "run_data_prepare", overtaken)
    assert job_confirm(owner=owner, job_id=job.id).state == Job.State.RUNNING
    assert Run.objects.count() == Hold.objects.count() == 1


def test_a_running_job_asks_the_scheduler_once_and_ends_when_its_run_does():
    owner = buyer()
    job = running_job(owner)
    for _ in range(2):
        job = job_cancel(owner=owner, job_id=job.id)
    assert job.state == Job.State.RUNNING
    assert job.cancel_requested_at is not None
    assert Inbox.objects.filter(kind="RunCancelled").count() == 1


def test_someone_elses_job_is_not_found():
    job = quoted_job(buyer("bea"))
    ben = buyer("ben")
    for service in (job_confirm, job_cancel):
        with pytest.raises(JobNotFound):
            service(owner=ben, job_id=job.id)
    with pytest.raises(JobNotFound):
        job_confirm(owner=ben, job_id=uuid.uuid4())


def test_an_ended_job_cannot_be_cancelled():
    owner = buyer()
    job = running_job(owner)
    job_move(job_id=job.id, source=Job.State.RUNNING, target=Job.State.FINISHED)
    with pytest.raises(JobConflict):
        job_cancel(owner=owner, job_id=job.id)


def test_only_listed_moves_are_possible_and_only_from_the_state_it_is_in():
    job = quoted_job(buyer())
    assert set(TRANSITIONS) == set(Job.State.values)
    with pytest.raises(ValueError, match="cannot go from quoted to finished"):
        job_move(job_id=job.id, source=Job.State.QUOTED, target=Job.State.FINISHED)
    assert not job_move(job_id=job.id, source=Job.State.RUNNING, target=Job.State.FAILED)
    job.refresh_from_db()
    assert job.state == Job.State.QUOTED
