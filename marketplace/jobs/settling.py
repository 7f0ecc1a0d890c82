"""Turns the scheduler's news into money and models: round by round charges, at the end the model and the rest of
the hold.

Every step may be repeated: charges and releases move money once, blobs are named by their content, and a piece of
news is deleted in the transaction that holds its last effect. So a process may die between any two steps, and
whoever comes next takes up where it was.
"""

import logging
import uuid
from collections.abc import Callable, Iterable

from django.db import transaction

from billing.services import Charge, hold_charge, hold_release
from blobs.selectors import blob_bytes
from blobs.services import blob_hold, blob_put, blob_release
from common.clock import utc_now
from marketplace.catalogue.builder import MAX_PARAMETERS
from marketplace.invoices.services import invoice_issue
from marketplace.jobs.artefacts import model_pt2
from marketplace.jobs.transitions import job_move
from marketplace.models import Job
from scheduler.models import Run, RunNews
from scheduler.selectors import accepted_leases, rounds_of

log = logging.getLogger(__name__)

MAX_PARAMETERS_BYTES = 8 * MAX_PARAMETERS

_ENDS = {
    Run.State.FINISHED: Job.State.FINISHED,
    Run.State.CANCELLED: Job.State.CANCELLED,
    Run.State.FAILED: Job.State.FAILED,
}


def charge_key(lease_id: uuid.UUID) -> str:
    """The idempotency key of the one charge for a lease's accepted result."""
    return f"charge:lease:{lease_id}"


def settle_pending() -> int:
    """Handle news in the order it came; returns how many pieces took effect.

    One that fails stays for the next time and holds up no other job's.
    """
    settled = 0
    for news in list(RunNews.objects.order_by("id")):
        try:
            settled += _HANDLERS[news.kind](news)
        except Exception:
            log.exception(
                "news %s of run %s failed; it will be tried again", news.kind, news.payload["run_id"]
            )
    return settled


def _round_closed(news: RunNews) -> bool:
    """Charge the round's accepted results to the job's hold."""
    job, run = _job_and_run(news)
    with transaction.atomic():
        if not _claim(news):
            return False
        _charge(job, run, [news.payload["round_index"]])
    return True


def _run_ended(news: RunNews) -> bool:
    """Charge what no round's news has, release the hold, store the model, end the job with its invoice."""
    job, run = _job_and_run(news)
    with transaction.atomic():
        _charge(job, run, [round_.index for round_ in rounds_of(run.pk)])
        hold_release(reference=job.reference)
    model = _model_store(job, run)
    with transaction.atomic():
        claimed = _claim(news)
        if claimed:
            job_move(
                job_id=job.pk,
                source=Job.State.RUNNING,
                target=_ENDS[Run.State(run.state)],
                ended_at=utc_now(),
                ended_because=run.ended_because,
                ended_message=run.ended_message,
                **model,
            )
            for sha256 in model.values():
                blob_hold(sha256=sha256, holder=job.model_holder)
            invoice_issue(job=job, now=utc_now())
        # All that only the run needed; of one who came too late, the model too.
        blob_release(holder=job.reference)
    return claimed


_HANDLERS: dict[str, Callable[[RunNews], bool]] = {"round_closed": _round_closed, "run_ended": _run_ended}


def _job_and_run(news: RunNews) -> tuple[Job, Run]:
    run_id = uuid.UUID(news.payload["run_id"])
    return Job.objects.select_related("dataset").get(run_id=run_id), Run.objects.get(pk=run_id)


def _claim(news: RunNews) -> bool:
    """Whether this transaction is the one that takes the news; another settler may have been quicker."""
    deleted, _ = RunNews.objects.filter(pk=news.pk).delete()
    return deleted == 1


def _charge(job: Job, run: Run, round_indices: Iterable[int]) -> None:
    """One charge for each accepted result, of exactly what the scheduler metered; work too small to price is free."""
    for index in round_indices:
        charges = [
            Charge(
                idempotency_key=charge_key(lease.id),
                owner_id=lease.owner_id,
                amount_microusd=lease.charge_microusd,
                device_id=lease.device_id,
            )
            for lease in accepted_leases(run.pk, index)
            if lease.charge_microusd
        ]
        if charges:
            hold_charge(reference=job.reference, charges=charges, memo=f"round {index + 1}")


def _model_store(job: Job, run: Run) -> dict[str, str]:
    """The trained model in both forms, by field of the job and held with the run's data; none without a round."""
    if run.params_sha256 == run.initial_params_sha256:
        return {}
    parameters = blob_bytes(run.params_sha256, max_bytes=MAX_PARAMETERS_BYTES)
    return {
        "model_safetensors_sha256": blob_put(data=parameters, holder=job.reference).sha256,
        "model_pt2_sha256": blob_put(data=model_pt2(job, parameters), holder=job.reference).sha256,
    }
