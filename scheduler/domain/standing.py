"""How a device has behaved: its bench grows with failures in a row, one success clears it, and its pace is learnt."""

from dataclasses import replace
from datetime import datetime, timedelta
from uuid import UUID

from scheduler.domain.limits import (
    BENCH_FIRST,
    BENCH_MAX,
    OVERHEAD_US,
    PACE_MAX,
    PACE_MIN,
    PACE_WEIGHT,
    REST,
    STALLED_MIN,
    STALLED_STEPS,
)
from scheduler.domain.state import LeaseState, StandingState
from scheduler.domain.turn import Turn

_DOUBLINGS_MAX = 16  # more than enough to reach BENCH_MAX, and keeps the power small


def is_benched(standing: StandingState, now: datetime) -> bool:
    return standing.benched_until is not None and now < standing.benched_until


def blame(turn: Turn, device_id: UUID) -> None:
    """Count a failure: the device sits out twice as long as before, then gets one lease to prove itself."""
    standing = turn.state.standing(device_id)
    bench = min(BENCH_FIRST * 2 ** min(standing.failures_in_a_row, _DOUBLINGS_MAX), BENCH_MAX)
    turn.put_standing(
        replace(standing, failures_in_a_row=standing.failures_in_a_row + 1, benched_until=turn.now + bench)
    )


def rest(turn: Turn, device_id: UUID) -> None:
    """Leave a device in peace for a moment, without blame, so that it does not fetch and hand back in a loop."""
    standing = turn.state.standing(device_id)
    until = turn.now + REST
    if standing.benched_until is None or standing.benched_until < until:
        turn.put_standing(replace(standing, benched_until=until))


def praise(turn: Turn, lease: LeaseState) -> None:
    """An accepted result clears the past and teaches the device's pace."""
    standing = turn.state.standing(lease.device_id)
    pace = (1 - PACE_WEIGHT) * standing.pace + PACE_WEIGHT * _pace(lease, lease.turnaround_us)
    turn.put_standing(
        replace(standing, failures_in_a_row=0, benched_until=None, pace=min(max(pace, PACE_MIN), PACE_MAX))
    )


def learns_from_expiry(turn: Turn, lease: LeaseState, *, steps: int) -> bool:
    """Whether an expired lease was honest but slow work; if so its device gets more time from now on.

    A device that still moved when its time was up is slower than we thought. One that stood still, or already
    is given the longest times, has failed.
    """
    if lease.step == 0 or _stands_still(turn, lease):
        return False
    elapsed_us = (turn.now - lease.granted_at) // timedelta(microseconds=1)
    pace = min(_pace(lease, elapsed_us * steps // lease.step), PACE_MAX)
    standing = turn.state.standing(lease.device_id)
    if pace <= standing.pace:
        return False
    turn.put_standing(replace(standing, pace=pace))
    return True


def _stands_still(turn: Turn, lease: LeaseState) -> bool:
    """Whether a lease has made no step for much longer than its steps took so far."""
    moved_at = turn.state.moved_at.get(lease.id)
    if moved_at is None:
        return True
    usual = (moved_at - lease.granted_at) / lease.step
    return turn.now - moved_at > max(STALLED_MIN, STALLED_STEPS * usual)


def _pace(lease: LeaseState, turnaround_us: int) -> float:
    return turnaround_us / (lease.expected_gpu_us + OVERHEAD_US)
