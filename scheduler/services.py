"""What the buyer's side may ask of the scheduler. Requests are rows that the dispatcher takes up."""

from uuid import UUID

from django.db import transaction

from common.wake import DISPATCHER, wake_on_commit
from scheduler import store
from scheduler.domain.spec import DataSlice, RunSpec, spec_check
from scheduler.errors import RunNotFound
from scheduler.models import Inbox, Run

__all__ = ["DataSlice", "RunSpec", "run_cancel", "run_start"]


@transaction.atomic
def run_start(*, spec: RunSpec) -> Run:
    """Have a run trained. Its blobs must be stored; raises RunInvalid with the field at fault."""
    spec_check(spec)
    run = store.spec_to_row(spec)
    run.save(force_insert=True)
    Inbox.publish("RunAdded", run_id=str(run.id))
    wake_on_commit(DISPATCHER)
    return run


@transaction.atomic
def run_cancel(*, run_id: UUID) -> None:
    """Have a run ended soon. What is accepted by then stays accepted; a run that has ended stays as it is."""
    if not Run.objects.filter(pk=run_id).exists():
        raise RunNotFound(f"There is no run {run_id}; check the id.")
    Inbox.publish("RunCancelled", run_id=str(run_id))
    wake_on_commit(DISPATCHER)
