"""The scheduler as a state machine: batches of events in, an `Outcome` out. No I/O, no clock, no randomness inside.

`step` changes the given `State` in place. A caller that cannot store the outcome throws the state away and
loads it anew, so an unstored turn has never happened.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from scheduler.domain import devices, events, placement, reports, rounds, runs, timers, waiting
from scheduler.domain.state import State
from scheduler.domain.turn import NewId, Outcome, Turn

_HANDLERS: dict[type[events.Event], Callable[[Turn, Any], None]] = {
    events.DeviceConnected: devices.on_connected,
    events.DeviceDisconnected: devices.on_disconnected,
    events.DeviceBlocked: devices.on_blocked,
    events.DeviceReady: devices.on_ready,
    events.DeviceChanged: devices.on_changed,
    events.DeviceRemoved: devices.on_removed,
    events.LeaseProgress: reports.on_progress,
    events.LeaseHandedBack: reports.on_handed_back,
    events.ResultReported: reports.on_reported,
    events.ResultChecked: reports.on_checked,
    events.RunAdded: rounds.on_run_added,
    events.RunCancelled: runs.on_cancelled,
    events.RunPaused: runs.on_paused,
    events.RunResumed: runs.on_resumed,
    events.RoundAggregated: rounds.on_aggregated,
    events.RoundFailed: rounds.on_failed,
    events.Tick: timers.on_tick,
}


def step(state: State, batch: Sequence[events.Event], *, now: datetime, new_id: NewId) -> Outcome:
    """Handle a batch of events in order, then place what waits on what is free."""
    turn = Turn(state, now, new_id)
    for event in batch:
        turn.cause = type(event).__name__
        _HANDLERS[type(event)](turn, event)
    _settle(turn, note_waiting=any(isinstance(event, events.Tick) for event in batch))
    return turn.outcome


def recover(state: State, *, now: datetime, new_id: NewId) -> Outcome:
    """The first turn over a state that was loaded: take up what an earlier process left."""
    turn = Turn(state, now, new_id, cause="recovery")
    timers.recover(turn)
    _settle(turn, note_waiting=False)
    return turn.outcome


def _settle(turn: Turn, *, note_waiting: bool) -> None:
    turn.cause = "placement"
    placement.place_shards(turn)
    for run in list(turn.state.runs.values()):
        rounds.end_if_used_up(turn, run)
    if note_waiting:
        waiting.note_waiting(turn)
    turn.state.forget_finished()
