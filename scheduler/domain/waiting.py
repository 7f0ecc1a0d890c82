"""Why a run makes no headway now: the first thing that every connected device lacks. '' while it does."""

from scheduler.domain import budget, placement, standing
from scheduler.domain.state import RunState
from scheduler.domain.turn import Turn


def note_waiting(turn: Turn) -> None:
    """Keep each run's reason to wait in its row, for whoever asks from another process."""
    pending = placement.pending_shards(turn.state)
    for run in list(turn.state.runs.values()):
        stands_still = run.id in pending and not turn.state.live_leases_of_run.of(run.id)
        reason = why_waiting(turn, run) if stands_still else ""
        if reason != run.waiting:
            turn.change(run, waiting=reason)


def why_waiting(turn: Turn, run: RunState) -> str:
    state = turn.state
    priced = [device for device in state.devices.values() if budget.is_priced(run.spec, device)]
    if not priced:
        return "no_device_online"
    fitting = [device for device in priced if placement.fits(state, run, device)]
    if not fitting:
        return "too_big"
    affordable = [device for device in fitting if placement.affords(state, run, device)]
    if not affordable:
        return "budget_used_up"
    allowed = [device for device in affordable if device.blocked is None]
    if not allowed:
        outside = all(device.blocked == "outside_window" for device in affordable)
        return "none_in_idle_window" if outside else "devices_blocked"
    if all(standing.is_benched(state.standing(device.id), turn.now) for device in allowed):
        return "devices_benched"
    return "fleet_busy"
