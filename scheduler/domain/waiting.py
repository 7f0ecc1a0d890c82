"""Why a run makes no headway now: the first thing that every connected device lacks. '' while it does."""

from collections.abc import Sequence

from scheduler.domain import budget, placement, standing
from scheduler.domain.state import DeviceState, RunState
from scheduler.domain.turn import Turn


def note_waiting(turn: Turn) -> None:
    """Keep each run's reason to wait in its row, for whoever asks from another process."""
    pending = placement.pending_shards(turn.state)
    for run in list(turn.state.runs.values()):
        stands_still = run.id in pending and not turn.state.live_leases_of_run.of(run.id)
        reason, most_bytes = why_waiting(turn, run) if stands_still else ("", 0)
        if (reason, most_bytes) != (run.waiting, run.waiting_bytes):
            turn.change(run, waiting=reason, waiting_bytes=most_bytes)


def why_waiting(turn: Turn, run: RunState) -> tuple[str, int]:
    """(code, the most bytes that a connected device has of what every one has too little of; else 0)."""
    priced = [device for device in turn.state.devices.values() if budget.is_priced(run.spec, device)]
    if not priced:
        return "no_device_online", 0
    return _too_small(run, priced) or (_why_not_placed(turn, run, priced), 0)


def _too_small(run: RunState, devices: Sequence[DeviceState]) -> tuple[str, int] | None:
    """What no device has enough of, with the most that one has; None if some device has enough of both."""
    roomy = [device for device in devices if placement.has_memory(run, device)]
    if not roomy:
        return "too_big", max(device.memory_bytes for device in devices)
    if not any(placement.has_buffer(run, device) for device in roomy):
        return "buffer_too_big", max(device.max_buffer_bytes for device in roomy)
    return None


def _why_not_placed(turn: Turn, run: RunState, priced: Sequence[DeviceState]) -> str:
    state = turn.state
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
