"""Jobs: made with a quote, confirmed with a hold, cancelled. How they end is `marketplace.settlement`'s."""

import uuid
from datetime import datetime

from django.db import transaction

from accounts.models import User
from accounts.services import user_lock
from billing.domain.rates import Tariff
from billing.selectors import tariff_at
from billing.services import hold_open, wallet_check
from blobs.services import blob_put, blob_release
from common.clock import utc_now
from marketplace.catalogue.builder import build
from marketplace.catalogue.specs import spec_to_json
from marketplace.errors import DatasetNotFound, JobConflict, QuotedJobLimit, QuoteExpired
from marketplace.jobs.expiry import quote_expire
from marketplace.jobs.plan import JobPlan, dataset_shape, job_plan, metric_of
from marketplace.jobs.preparation import RunData, run_data_prepare
from marketplace.jobs.programs import JobPrograms, RowSpec, ShardSize, programs_capture
from marketplace.jobs.quote import Quote, quote_make
from marketplace.jobs.settings import JobSettings, optimizer_to_json, settings_check
from marketplace.jobs.transitions import job_move
from marketplace.limits import QUOTE_VALID, QUOTED_JOBS_MAX
from marketplace.models import Dataset, Job
from marketplace.selectors import dataset_of, job_of
from scheduler.domain.spec import RunSpec
from scheduler.services import run_cancel, run_start


def job_create(*, owner: User, dataset_id: uuid.UUID, settings: JobSettings) -> Job:
    """Check everything, capture the programs and quote; nothing is held or run yet.

    Raises DatasetNotFound, ModelSpecInvalid, ModelDoesNotFit, JobInvalid, BudgetTooSmall or QuotedJobLimit.
    """
    settings = settings_check(settings)
    _check_quota(owner)  # before the work; again with what it leads to
    tariff = tariff_at(utc_now())
    dataset = dataset_of(owner, dataset_id)
    plan = job_plan(settings, dataset)
    programs = _programs(settings, dataset, plan)
    quote = quote_make(
        cost=programs.cost,
        local_steps=settings.local_steps,
        rounds=plan.rounds,
        shards_per_round=settings.shards_per_round,
        rates=tariff.rates,
        budget_microusd=settings.budget_microusd,
    )
    return _store(owner, dataset, settings, plan, programs, quote, tariff)


def job_confirm(*, owner: User, job_id: uuid.UUID, now: datetime | None = None) -> Job:
    """Accept a job's quote: hold its funds and start its run, both or neither. Confirming twice is confirming once.

    Raises JobNotFound, JobConflict if it has ended, QuoteExpired, InsufficientFunds, WalletFrozen.
    """
    job = job_of(owner, job_id)
    if job.state == Job.State.QUOTED:
        moment = now or utc_now()
        if moment >= job.quote_expires_at:
            quote_expire(job=job, now=moment)
            raise QuoteExpired(
                f"The quote of '{job.name}' was not confirmed in time. Create the job anew for a new one."
            )
        wallet_check(owner)
        # Cut and stored before the transaction, which would block other writers for as long as that takes.
        data = run_data_prepare(job)
        _start(job, data, confirmed_at=moment)
        job.refresh_from_db()
    if job.state in Job.ENDED:
        blob_release(holder=job.reference)  # what was prepared while it was being cancelled
        raise JobConflict(f"The job '{job.name}' has ended ({job.state}). Create it anew to run it.")
    return job


def job_cancel(*, owner: User, job_id: uuid.UUID, now: datetime | None = None) -> Job:
    """Stop a job. Accepted work is paid, the rest of the hold returns when its run has stopped.

    Cancelling twice is cancelling once. Raises JobNotFound, JobConflict if it has ended otherwise.
    """
    job = job_of(owner, job_id)
    moment = now or utc_now()
    with transaction.atomic():
        dropped = job_move(
            job_id=job.id,
            source=Job.State.QUOTED,
            target=Job.State.CANCELLED,
            ended_at=moment,
            ended_because="cancelled",
            ended_message="Cancelled before it was confirmed; nothing was held.",
        )
        if dropped:
            blob_release(holder=job.reference)
        running = Job.objects.filter(pk=job.id, state=Job.State.RUNNING, cancel_requested_at=None)
        if running.update(cancel_requested_at=moment):
            job.refresh_from_db()
            run_cancel(run_id=_run_id(job))
    job.refresh_from_db()
    if job.state in (Job.State.FINISHED, Job.State.FAILED):
        raise JobConflict(f"The job '{job.name}' has ended ({job.state}); there is nothing to cancel.")
    return job


def _check_quota(owner: User) -> None:
    quoted = Job.objects.filter(owner=owner, state=Job.State.QUOTED, quote_expires_at__gt=utc_now())
    if quoted.count() >= QUOTED_JOBS_MAX:
        raise QuotedJobLimit(
            f"You have {QUOTED_JOBS_MAX} quotes that wait for you, as many as one person may have. Confirm or cancel "
            "one of them first."
        )


def _programs(settings: JobSettings, dataset: Dataset, plan: JobPlan) -> JobPrograms:
    shape = dataset_shape(dataset)
    module = build(settings.model, input_shape=shape.input_shape, outputs=shape.outputs, seed=settings.seed)
    return programs_capture(
        module,
        loss=plan.loss,
        optimizer=settings.optimizer.rule(),
        inputs=RowSpec(dataset.input_shape, dataset.input_dtype),
        targets=RowSpec(dataset.target_shape, dataset.target_dtype),
        batch_size=settings.batch_size,
        delta_bits=settings.delta_bits,
        validation_rows=plan.validation_rows,
        shard=ShardSize(rows=plan.slice_rows, steps=settings.local_steps),
    )


def _store(
    owner: User,
    dataset: Dataset,
    settings: JobSettings,
    plan: JobPlan,
    programs: JobPrograms,
    quote: Quote,
    tariff: Tariff,
) -> Job:
    job = Job(
        owner=owner,
        dataset=dataset,
        name=settings.name,
        model_spec=spec_to_json(settings.model),
        parameters=plan.parameters,
        loss=plan.loss.name,
        label_smoothing=settings.label_smoothing,
        optimizer_spec=optimizer_to_json(settings.optimizer),
        batch_size=settings.batch_size,
        local_steps=settings.local_steps,
        epochs=settings.epochs,
        target_metric=settings.target_metric,
        validation_split=settings.validation_split,
        seed=settings.seed,
        shards_per_round=settings.shards_per_round,
        delta_bits=settings.delta_bits,
        budget_microusd=settings.budget_microusd,
        step_flops=programs.cost.flops,
        step_bytes=programs.cost.moved_bytes,
        step_dispatches=programs.cost.dispatches,
        memory_bytes=programs.memory_bytes,
        largest_buffer_bytes=programs.largest_buffer_bytes,
        rounds_planned=quote.rounds,
        rates=dict(tariff.rates),
        fee_basis_points=tariff.fee_basis_points,
        quote_basis=quote.basis_json(),
        quote_low_microusd=quote.low_microusd,
        quote_high_microusd=quote.high_microusd,
        quote_cap_microusd=quote.cap_microusd,
        hold_microusd=quote.hold_microusd,
        quote_expires_at=utc_now() + QUOTE_VALID,
    )
    with transaction.atomic():
        user_lock(owner)
        _check_quota(owner)
        # It may have been deleted while the programs were captured; from here on it stays.
        if not Dataset.objects.select_for_update().filter(pk=dataset.pk).exists():
            raise DatasetNotFound("The dataset has just been deleted. Choose another one.", field="dataset")
        job.program_sha256 = blob_put(data=programs.training_step, holder=job.reference).sha256
        job.forward_sha256 = blob_put(data=programs.forward, holder=job.reference).sha256
        job.save(force_insert=True)
    return job


@transaction.atomic
def _start(job: Job, data: RunData, *, confirmed_at: datetime) -> None:
    run_id = uuid.uuid4()
    claimed = job_move(
        job_id=job.id,
        source=Job.State.QUOTED,
        target=Job.State.RUNNING,
        run_id=run_id,
        confirmed_at=confirmed_at,
    )
    if not claimed:
        return
    hold_open(
        user=job.owner,
        reference=job.reference,
        amount_microusd=job.hold_microusd,
        fee_basis_points=job.fee_basis_points,
    )
    run_start(spec=_run_spec(job, run_id, data))


def _run_spec(job: Job, run_id: uuid.UUID, data: RunData) -> RunSpec:
    return RunSpec(
        id=run_id,
        buyer_id=job.owner_id,
        program_sha256=job.program_sha256,
        forward_sha256=job.forward_sha256,
        validation_sha256=data.validation_sha256,
        initial_params_sha256=data.initial_params_sha256,
        slices=data.slices,
        seed=job.seed,
        local_steps=job.local_steps,
        batch_size=job.batch_size,
        learning_rate=job.optimizer_spec["learning_rate"],
        schedule=job.optimizer_spec["schedule"],
        shards_per_round=job.shards_per_round,
        rounds_planned=job.rounds_planned,
        metric=metric_of(job.dataset),
        target_metric=job.target_metric,
        step_flops=job.step_flops,
        step_bytes=job.step_bytes,
        step_dispatches=job.step_dispatches,
        memory_bytes=job.memory_bytes,
        largest_buffer_bytes=job.largest_buffer_bytes,
        rates=job.rates,
        fee_basis_points=job.fee_basis_points,
        budget_microusd=job.hold_microusd,
    )


def _run_id(job: Job) -> uuid.UUID:
    if job.run_id is None:
        raise RuntimeError(f"job {job.id} runs without a run")
    return job.run_id
