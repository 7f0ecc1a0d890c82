"""What the passing of time brings: deadlines, devices that do not come back, and questions asked again."""

from datetime import datetime, timedelta

from scheduler.domain import devices, leases, rounds, runs, spells, standing
from scheduler.domain.events import RoundFailed, Tick
from scheduler.domain.limits import (
    MAX_ASKS,
    MAX_LEASE_ASKS,
    REAGGREGATE_AFTER,
    RECHECK_AFTER,
    RESEND_LEASE_AFTER,
    RESTART_GRACE,
    RESTART_ROUND_GRACE,
)
from scheduler.domain.state import Asked, LeaseState, ResumeBy, RoundState
from scheduler.domain.transitions import LeasePhase, RoundPhase
from scheduler.domain.turn import Turn


def on_tick(turn: Turn, event: Tick) -> None:
    spells.end_unheard(turn)
    spells.forget_ended(turn)
    for run_id in list(turn.state.runs):
        for lease in turn.state.live_in(run_id):
            if turn.state.leases[lease.id].live:  # an earlier one may have ended the run
                _look_at_lease(turn, turn.state.leases[lease.id])
        round_id = turn.state.current_round.get(run_id)
        if round_id is not None:
            _look_at_round(turn, turn.state.rounds[round_id])


def recover(turn: Turn) -> None:
    """Take up what an earlier process left: devices get time to come back, and what was asked is asked again.

    That the server was away is no device's fault, so deadlines move and nobody is blamed.
    """
    turn.state.unheard_since = turn.now
    for lease in [lease for lease in turn.state.leases.values() if lease.live]:
        if lease.phase is LeasePhase.REPORTED:
            turn.ask_check(lease)
            continue
        resume_at = turn.now + RESTART_GRACE
        turn.state.resume_by[lease.id] = ResumeBy(resume_at, blamed=False)
        if lease.deadline_at < resume_at:
            turn.change(lease, deadline_at=resume_at)
    for round_ in list(turn.state.rounds.values()):
        if round_.phase is RoundPhase.AGGREGATING:
            turn.ask_aggregation(round_)
        elif round_.deadline_at is not None and round_.deadline_at < turn.now + RESTART_ROUND_GRACE:
            turn.change(round_, deadline_at=turn.now + RESTART_ROUND_GRACE)


def _look_at_lease(turn: Turn, lease: LeaseState) -> None:
    asked = turn.state.asked.get(lease.id)
    resume_by = turn.state.resume_by.get(lease.id)
    if lease.phase is LeasePhase.REPORTED:
        _look_at_check(turn, lease, asked)
    elif resume_by is not None and turn.now >= resume_by.at:
        _expire_lost(turn, lease, blamed=resume_by.blamed)
    elif turn.now >= lease.deadline_at:
        _expire_overdue(turn, lease)
    elif lease.phase is LeasePhase.GRANTED and _is_due(turn.now, asked, RESEND_LEASE_AFTER):
        _ask_again(turn, lease, asked)


def _ask_again(turn: Turn, lease: LeaseState, asked: Asked | None) -> None:
    if asked is None or asked.times < MAX_LEASE_ASKS:
        turn.send_lease(lease)
    else:
        devices.forget(turn, lease.device_id)
        _expire_lost(turn, lease, blamed=True)


def _look_at_check(turn: Turn, lease: LeaseState, asked: Asked | None) -> None:
    if not _is_due(turn.now, asked, RECHECK_AFTER):
        return
    if asked is not None and asked.times >= MAX_ASKS:
        leases.revoke(
            turn, lease, "check_failed"
        )  # ours to answer for: nobody is blamed, the shard waits again
    else:
        turn.ask_check(lease)


def _expire_lost(turn: Turn, lease: LeaseState, *, blamed: bool) -> None:
    """The device has not come back to its lease. A bench of some seconds keeps one that comes and goes from harm."""
    leases.end(turn, lease, LeasePhase.EXPIRED, runs.EXPIRED_LOST)
    if blamed:
        standing.blame(turn, lease.device_id)


def _expire_overdue(turn: Turn, lease: LeaseState) -> None:
    steps = turn.state.runs[lease.run_id].spec.local_steps
    slow = standing.learns_from_expiry(turn, lease, steps=steps)
    turn.send_revoke(lease.device_id, lease.id, "expired")
    leases.end(turn, lease, LeasePhase.EXPIRED, runs.EXPIRED_SLOW if slow else runs.EXPIRED_STALLED)
    if not slow:
        standing.blame(turn, lease.device_id)
        runs.end_if_shard_keeps_failing(turn, lease)


def _look_at_round(turn: Turn, round_: RoundState) -> None:
    if round_.phase is RoundPhase.OPEN:
        rounds.close_if_due(turn, round_)
        return
    asked = turn.state.asked.get(round_.id)
    if not _is_due(turn.now, asked, REAGGREGATE_AFTER):
        return
    if asked is not None and asked.times >= MAX_ASKS:
        message = "Its results could not be put together; an operator finds the cause in the server's log."
        rounds.on_failed(turn, RoundFailed(round_.run_id, round_.index, "aggregation_failed", message))
    else:
        turn.ask_aggregation(round_)


def _is_due(now: datetime, asked: Asked | None, wait: timedelta) -> bool:
    return asked is None or now - asked.at >= wait
