"""The heavy work of the scheduler as Celery tasks: checking results and making outer steps.

Tasks decide nothing. Each tells the dispatcher its outcome through the inbox, and may run twice without harm.
"""

import logging
import math
from uuid import UUID

import torch
from celery import shared_task
from django.conf import settings
from django.db import transaction

from blobs.selectors import blob_bytes, blob_is_held, blob_size
from blobs.services import blob_put
from common.clock import utc_now
from common.errors import NightshiftError
from common.wake import DISPATCHER, wake_on_commit
from metal_kernels.delta import delta_decode
from metal_kernels.errors import KernelError
from metal_kernels.tensorfile import tensorfile_dumps
from scheduler.aggregation import Contribution, Evaluation, Tensors, evaluate, is_finite, outer_step
from scheduler.artefacts import batch_rows, parameter_names, program_of, runtime_of, tensors_of
from scheduler.checks import Verdict, delta_verdict, losses_refusal
from scheduler.domain.transitions import OPEN_RUN
from scheduler.domain.turn import lease_holder, run_holder
from scheduler.errors import AggregationFailed, Diverged, RoundUnreadable
from scheduler.models import Inbox, Lease, Round, Run
from scheduler.selectors import accepted_leases
from scheduler.services import PRUNED_AT_ONCE, spells_prune

log = logging.getLogger(__name__)

# The norms that a delta is compared with: those of the run's latest accepted results.
_NORMS_KEPT = 100


@shared_task
def check_result(lease_id: str) -> None:
    """Check the result of a reported lease and tell `ResultChecked`."""
    lease = Lease.objects.select_related("shard__round__run").get(pk=UUID(lease_id))
    if lease.state != Lease.State.REPORTED:
        return
    verdict = _verdict(lease)
    if verdict.refusal is not None:
        log.warning("device %s: result of lease %s refused: %s", lease.device_id, lease.id, verdict.refusal)
    _tell("ResultChecked", lease_id=lease_id, refusal=verdict.refusal, delta_norm=verdict.delta_norm)


@shared_task
def aggregate_round(run_id: str, round_index: int) -> None:
    """Make the outer step of a round and tell `RoundAggregated`, or `RoundFailed` if there can be none."""
    round_ = Round.objects.select_related("run").get(run_id=UUID(run_id), index=round_index)
    if round_.state != Round.State.AGGREGATING or round_.run.state not in OPEN_RUN:
        return
    torch.set_num_threads(settings.TORCH_THREADS)
    try:
        new, momentum = _outer_step(round_)
        evaluation = _evaluate(round_.run, new)
        if not is_finite(new) or not math.isfinite(evaluation.loss):
            raise Diverged(
                f"Training diverged in round {round_index + 1}: its numbers grew without bound. "
                "Lower the learning rate."
            )
    except AggregationFailed as error:
        log.warning("run %s round %d: %s", run_id, round_index, error)
        _tell("RoundFailed", run_id=run_id, round_index=round_index, code=error.code, message=error.message)
        return
    _tell(
        "RoundAggregated",
        run_id=run_id,
        round_index=round_index,
        params_sha256=_put(round_.run, new),
        outer_state_sha256=_put(round_.run, momentum),
        validation_loss=evaluation.loss,
        validation_metric=_metric(round_.run, evaluation),
    )


@shared_task(expires=3_600)
def prune_spells() -> None:
    """Let go of spells that are past keeping, some thousands in each transaction."""
    while spells_prune(now=utc_now()) == PRUNED_AT_ONCE:
        pass


def _verdict(lease: Lease) -> Verdict:
    run = lease.shard.round.run
    refusal = losses_refusal(steps=lease.step, losses=lease.losses, local_steps=run.local_steps)
    if refusal is not None:
        return Verdict(refusal)
    # A device answers for its own upload: someone else's delta under its name is no result.
    if not blob_is_held(lease.delta_sha256, holder=lease_holder(lease.id)):
        return Verdict("delta_missing")
    if blob_size(lease.delta_sha256) != lease.delta_bytes:
        return Verdict("delta_size")
    program = program_of(run.program_sha256)
    norms = accepted_leases(run.id).order_by("-ended_at").values_list("delta_norm", flat=True)[:_NORMS_KEPT]
    return delta_verdict(
        blob_bytes(lease.delta_sha256, max_bytes=lease.delta_bytes),
        spec=program.model_spec,
        bits=program.delta_bits,
        parameters=parameter_names(program),
        known_norms=[norm for norm in norms if norm is not None],
    )


def _outer_step(round_: Round) -> tuple[Tensors, Tensors]:
    run = round_.run
    try:
        program = program_of(run.program_sha256)
        contributions = [
            Contribution(
                delta_decode(
                    blob_bytes(lease.delta_sha256, max_bytes=lease.delta_bytes),
                    spec=program.model_spec,
                    bits=program.delta_bits,
                ),
                samples=lease.step * run.batch_size,
            )
            for lease in accepted_leases(run.id, round_.index)
        ]
        return outer_step(
            tensors_of(round_.params_sha256),
            tensors_of(round_.outer_state_sha256) if round_.outer_state_sha256 else {},
            contributions,
            parameters=parameter_names(program),
            learning_rate=run.outer_learning_rate,
            momentum_factor=run.outer_momentum,
        )
    except (KernelError, NightshiftError) as error:
        raise RoundUnreadable(
            f"The results of round {round_.index + 1} cannot be read ({error}); start the job again."
        ) from error


def _evaluate(run: Run, state: Tensors) -> Evaluation:
    try:
        validation = tensors_of(run.validation_sha256)
        forward = runtime_of(run.forward_sha256)
        rows = batch_rows(program_of(run.forward_sha256))
        return evaluate(forward, state, validation["inputs"], validation["targets"], batch_rows=rows)
    except (KernelError, NightshiftError, KeyError) as error:
        raise RoundUnreadable(
            f"The model cannot be evaluated on the validation rows ({error}); start the job again."
        ) from error


def _metric(run: Run, evaluation: Evaluation) -> float:
    if run.metric == "accuracy" and evaluation.accuracy is not None:
        return evaluation.accuracy
    return evaluation.loss


def _put(run: Run, tensors: Tensors) -> str:
    return blob_put(data=tensorfile_dumps(tensors), holder=run_holder(run.id)).sha256


@transaction.atomic
def _tell(kind: str, **fields: object) -> None:
    Inbox.publish(kind, **fields)
    wake_on_commit(DISPATCHER)
