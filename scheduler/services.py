"""What may be asked of the scheduler. Requests of the buyer's side are rows that the dispatcher takes up."""

from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction

from common.wake import DISPATCHER, wake_on_commit
from scheduler import store
from scheduler.domain.spec import DataSlice, RunSpec, spec_check
from scheduler.errors import RunNotFound
from scheduler.models import Inbox, Run, Spell

__all__ = ["DataSlice", "RunSpec", "run_cancel", "run_pause", "run_resume", "run_start", "spells_prune"]

# How long owners can look back; and how many rows one transaction lets go.
SPELLS_KEPT = timedelta(days=14)
PRUNED_AT_ONCE = 5_000


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
    _ask("RunCancelled", run_id)


@transaction.atomic
def run_pause(*, run_id: UUID) -> None:
    """Have a run given no new lease until it is resumed. What is leased goes on, and may still end the run."""
    _ask("RunPaused", run_id)


@transaction.atomic
def run_resume(*, run_id: UUID) -> None:
    """Have a run go on that was paused; any other stays as it is."""
    _ask("RunResumed", run_id)


def _ask(kind: str, run_id: UUID) -> None:
    if not Run.objects.filter(pk=run_id).exists():
        raise RunNotFound(f"There is no run {run_id}; check the id.")
    Inbox.publish(kind, run_id=str(run_id))
    wake_on_commit(DISPATCHER)


def spells_prune(*, now: datetime, at_once: int = PRUNED_AT_ONCE) -> int:
    """Delete the oldest spells that are past keeping, at most `at_once` of them; returns how many."""
    old = Spell.objects.filter(ended_at__lt=now - SPELLS_KEPT).order_by("ended_at")
    deleted, _ = Spell.objects.filter(pk__in=list(old.values_list("pk", flat=True)[:at_once])).delete()
    return deleted
