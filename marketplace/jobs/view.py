"""A job as its buyer sees it: state in words, why it waits, rounds, spend, what can be downloaded."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from billing.selectors import hold_remaining, wallet_balance, wallet_frozen_because
from common.clock import utc_now
from common.money import US_PER_SECOND, format_usd
from marketplace.jobs.plan import metric_of
from marketplace.models import Job
from scheduler.domain.transitions import OPEN_RUN
from scheduler.models import Round, Run
from scheduler.selectors import RunProgress, rounds_of, run_progress, why_waiting


@dataclass(frozen=True, slots=True)
class RoundView:
    """One round; losses and metric are None until it is evaluated."""

    number: int  # from 1
    state: str
    training_loss: float | None
    validation_loss: float | None
    validation_metric: float | None
    opened_at: datetime
    closed_at: datetime | None


@dataclass(frozen=True, slots=True)
class JobView:
    job: Job
    state_words: str
    waiting: str | None  # a sentence
    metric: str  # accuracy or loss
    latest_metric: float | None
    rounds: tuple[RoundView, ...]
    rounds_done: int
    rounds_planned: int
    shards: dict[str, int]  # of the round under way, by state
    samples: int
    gpu_seconds: float
    spent_microusd: int
    hold_left_microusd: int
    eta: datetime | None  # from the pace of the rounds so far
    can_confirm: bool
    can_cancel: bool
    downloads: tuple[str, ...]  # formats: safetensors, pt2


def job_view(job: Job, *, now: datetime | None = None) -> JobView:
    progress = run_progress(job.run_id) if job.run_id else None
    rounds = tuple(_round_view(round_) for round_ in rounds_of(job.run_id)) if job.run_id else ()
    measured = [view.validation_metric for view in rounds if view.validation_metric is not None]
    return JobView(
        job=job,
        state_words=_state_words(job, progress),
        waiting=_waiting(job, progress),
        metric=metric_of(job.dataset),
        latest_metric=measured[-1] if measured else None,
        rounds=rounds,
        rounds_done=progress.rounds_done if progress else 0,
        rounds_planned=job.rounds_planned,
        shards=progress.shards if progress else {},
        samples=progress.samples if progress else 0,
        gpu_seconds=progress.metered_gpu_us / US_PER_SECOND if progress else 0.0,
        spent_microusd=progress.spent_microusd if progress else 0,
        hold_left_microusd=hold_remaining(job.reference) if job.run_id else 0,
        eta=_eta(job, rounds, now or utc_now()) if _trains(job, progress) else None,
        can_confirm=job.state == Job.State.QUOTED and not wallet_frozen_because(job.owner),
        can_cancel=_can_cancel(job),
        downloads=_downloads(job),
    )


def _trains(job: Job, progress: RunProgress | None) -> bool:
    """Whether it is getting on, so that the pace so far says something."""
    return job.state == Job.State.RUNNING and progress is not None and progress.state == Run.State.ACTIVE


def _state_words(job: Job, progress: RunProgress | None) -> str:
    if job.state == Job.State.QUOTED:
        return "quoted, not confirmed"
    if job.state != Job.State.RUNNING or progress is None:
        return str(job.state)
    if progress.state not in OPEN_RUN:
        return "settling the bill"
    if job.cancel_requested_at:
        return "stopping"
    if progress.state == Run.State.PAUSED:
        return "paused"
    return "training"


def _waiting(job: Job, progress: RunProgress | None) -> str | None:
    if job.state == Job.State.QUOTED:
        because = wallet_frozen_because(job.owner)
        if because:
            return f"Cannot be confirmed: your wallet is frozen. {_write(because)}"
        missing_microusd = job.hold_microusd - wallet_balance(job.owner)
        if missing_microusd > 0:
            return f"Waits for {format_usd(missing_microusd)} more in your wallet, and for you to confirm its quote."
        return "Waits for you to confirm its quote."
    if job.run_id is None or progress is None or progress.state not in OPEN_RUN:
        return None
    if progress.state == Run.State.PAUSED:
        return _paused(job)
    waiting = why_waiting(job.run_id)
    return waiting.sentence if waiting else None


def _paused(job: Job) -> str:
    because = wallet_frozen_because(job.owner)
    if not because:
        return "Goes on in a moment."
    return (
        f"Paused, because your wallet is frozen. {_write(because)} Devices finish what they have begun, and results "
        "that are accepted are paid from what is set aside. The job goes on when the freeze is lifted."
    )


def _write(because: str) -> str:
    return f"The reason: {because} Write to the operator of this site."


def _round_view(round_: Round) -> RoundView:
    return RoundView(
        number=round_.index + 1,
        state=round_.state,
        training_loss=round_.training_loss,
        validation_loss=round_.validation_loss,
        validation_metric=round_.validation_metric,
        opened_at=round_.opened_at,
        closed_at=round_.closed_at,
    )


def _eta(job: Job, rounds: Sequence[RoundView], now: datetime) -> datetime | None:
    durations = [view.closed_at - view.opened_at for view in rounds if view.closed_at]
    if not durations:
        return None
    pace = sum(durations, timedelta()) / len(durations)
    return now + pace * max(0, job.rounds_planned - len(durations))


def _can_cancel(job: Job) -> bool:
    return job.state == Job.State.QUOTED or (job.state == Job.State.RUNNING and not job.cancel_requested_at)


def _downloads(job: Job) -> tuple[str, ...]:
    stored = {"safetensors": job.model_safetensors_sha256, "pt2": job.model_pt2_sha256}
    return tuple(name for name, sha256 in stored.items() if sha256)
