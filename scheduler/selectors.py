"""Reads of runs, rounds and leases, for the buyer's side and the fleet manager."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import Count, QuerySet, Sum

from blobs.selectors import blob_size
from common.units import format_bytes
from scheduler.domain.spec import learning_rate_in_round
from scheduler.domain.transitions import LIVE
from scheduler.errors import RunNotFound
from scheduler.models import Lease, Round, Run, Shard

_WAITING_SENTENCES = {
    "no_device_online": "No device that can do this work is online.",
    "none_in_idle_window": "Devices are online, but none is in its idle window now.",
    "devices_blocked": "Devices are online, but their owners' rules (battery, charging, Wi-Fi, heat) keep them idle.",
    "devices_benched": "The devices that are online failed lately and sit out for a while.",
    "fleet_busy": "Every device that can do this work is busy with other jobs.",
    "too_big": "No device that is online has enough memory for this model.",
    "buffer_too_big": "No device that is online can hold this model's largest tensor.",
    "budget_used_up": "The rest of the budget is too small for the devices that are online.",
}


@dataclass(frozen=True, slots=True)
class Waiting:
    """Why a run makes no headway now: a stable code and a sentence for people."""

    code: str
    sentence: str


@dataclass(frozen=True, slots=True)
class RunProgress:
    run_id: UUID
    state: str
    ended_because: str
    ended_message: str
    rounds_done: int
    rounds_planned: int
    shards: dict[str, int]  # of the round under way, by state
    samples: int  # trained and accepted, repetitions counted
    metered_gpu_us: int
    spent_microusd: int
    budget_microusd: int
    params_sha256: str  # the newest parameters


@dataclass(frozen=True, slots=True)
class LeaseWork:
    """What a device must know to do the work of a lease."""

    lease_id: UUID
    device_id: UUID
    program_sha256: str
    program_bytes: int
    params_sha256: str
    params_bytes: int
    slice_sha256: str
    slice_bytes: int
    steps: int
    batch_size: int
    seed: int
    learning_rate: float
    deadline_at: datetime
    live: bool


def run_progress(run_id: UUID) -> RunProgress:
    run = _run(run_id)
    accepted = Lease.objects.filter(shard__round__run=run, state=Lease.State.ACCEPTED)
    totals = accepted.aggregate(steps=Sum("step"), gpu_us=Sum("metered_gpu_us"))
    current = Shard.objects.filter(round__run=run).exclude(round__state=Round.State.CLOSED)
    by_state = current.order_by().values_list("state").annotate(Count("id"))
    return RunProgress(
        run_id=run.id,
        state=run.state,
        ended_because=run.ended_because,
        ended_message=run.ended_message,
        rounds_done=run.rounds.filter(state=Round.State.CLOSED, validation_loss__isnull=False).count(),
        rounds_planned=run.rounds_planned,
        shards={state: count for state, count in by_state},  # noqa: C416 - typed tuples, not a query set
        samples=(totals["steps"] or 0) * run.batch_size,
        metered_gpu_us=totals["gpu_us"] or 0,
        spent_microusd=run.spent_microusd,
        budget_microusd=run.budget_microusd,
        params_sha256=run.params_sha256,
    )


def why_waiting(run_id: UUID) -> Waiting | None:
    """Why a run makes no headway, as the dispatcher last saw it; None while it does or has ended."""
    run = _run(run_id)
    if not run.waiting:
        return None
    return Waiting(run.waiting, _too_small_sentence(run) or _WAITING_SENTENCES[run.waiting])


def _too_small_sentence(run: Run) -> str | None:
    """With the figures, where the devices that are online have said what they have."""
    if not run.waiting_bytes:
        return None
    most = format_bytes(run.waiting_bytes)
    if run.waiting == "too_big":
        needs = (
            f"takes {format_bytes(run.memory_bytes)} of memory; no device that is online has more than {most}"
        )
    else:
        needs = (
            f"needs a buffer of {format_bytes(run.largest_buffer_bytes)}; no device that is online allows more "
            f"than {most}"
        )
    return f"A piece of this work {needs}. It goes on when a larger device comes."


def rounds_of(run_id: UUID) -> QuerySet[Round]:
    """All rounds of a run, in order."""
    return Round.objects.filter(run_id=run_id).order_by("index")


def accepted_leases(run_id: UUID, round_index: int | None = None) -> QuerySet[Lease]:
    """Accepted leases of one round, or of the whole run; their `charge_microusd` is what the buyer owes for each."""
    leases = Lease.objects.filter(shard__round__run_id=run_id, state=Lease.State.ACCEPTED)
    if round_index is not None:
        leases = leases.filter(shard__round__index=round_index)
    return leases.select_related("shard__round").order_by("shard__round__index", "shard__index")


def lease_for_device(lease_id: UUID) -> LeaseWork | None:
    """Everything the fleet manager needs to send a lease; None if there is no such lease."""
    lease = Lease.objects.filter(pk=lease_id).select_related("shard__round__run").first()
    if lease is None:
        return None
    shard = lease.shard
    run = shard.round.run
    data_slice = run.slices[shard.slice_index]
    return LeaseWork(
        lease_id=lease.id,
        device_id=lease.device_id,
        program_sha256=run.program_sha256,
        program_bytes=blob_size(run.program_sha256),
        params_sha256=shard.round.params_sha256,
        params_bytes=blob_size(shard.round.params_sha256),
        slice_sha256=data_slice["sha256"],
        slice_bytes=data_slice["bytes"],
        steps=run.local_steps,
        batch_size=run.batch_size,
        seed=shard.seed,
        learning_rate=learning_rate_in_round(
            run.learning_rate,
            run.schedule,
            round_index=shard.round.index,
            rounds_planned=run.rounds_planned,
        ),
        deadline_at=lease.deadline_at,
        live=lease.state in LIVE,
    )


def _run(run_id: UUID) -> Run:
    run = Run.objects.filter(pk=run_id).first()
    if run is None:
        raise RunNotFound(f"There is no run {run_id}; check the id.")
    return run
