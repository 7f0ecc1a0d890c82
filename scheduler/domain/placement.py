"""Which device gets which shard: eligible devices only, one lease each, buyers served fairly, cached data first."""

from collections.abc import Sequence
from uuid import UUID

from scheduler.domain import budget, leases, standing
from scheduler.domain.state import DeviceState, RunState, ShardState, State
from scheduler.domain.transitions import RoundPhase, ShardPhase
from scheduler.domain.turn import Turn


def place_shards(turn: Turn) -> None:
    """Lease pending shards to free devices until one of them runs out."""
    waiting = pending_shards(turn.state)
    free = [device for device in turn.state.devices.values() if waiting and is_free(turn, device)]
    while free and waiting:
        buyers = {run_id: turn.state.runs[run_id].spec.buyer_id for run_id in waiting}
        run = turn.state.runs[turn.state.fairness.first(buyers)]
        usable = [
            device for device in free if fits(turn.state, run, device) and affords(turn.state, run, device)
        ]
        if not usable:
            del waiting[run.id]
            continue
        shard, device = _best_pair(turn.state, run, waiting[run.id], usable)
        lease = leases.grant(turn, run, shard, device)
        turn.state.fairness.serve(buyer_id=run.spec.buyer_id, run_id=run.id, cost_us=lease.expected_gpu_us)
        free.remove(device)
        waiting[run.id].remove(shard)
        if not waiting[run.id]:
            del waiting[run.id]


def pending_shards(state: State) -> dict[UUID, list[ShardState]]:
    """Shards that wait for a device, by run, in their order."""
    waiting = {}
    for run_id, round_id in state.current_round.items():
        if state.rounds[round_id].phase is RoundPhase.OPEN:
            shards = [s for s in state.shards_in(round_id) if s.phase is ShardPhase.PENDING]
            if shards:
                waiting[run_id] = shards
    return waiting


def is_free(turn: Turn, device: DeviceState) -> bool:
    """Whether a device may be given work now: not blocked, leaving or benched, and without a lease."""
    return (
        device.blocked is None
        and not device.leaving
        and not turn.state.live_leases_of_device.of(device.id)
        and not standing.is_benched(turn.state.standing(device.id), turn.now)
    )


def fits(state: State, run: RunState, device: DeviceState) -> bool:
    """Whether a run's work can be done on a device: its class has a price, its memory (if known) is enough."""
    return (
        budget.is_priced(run.spec, device)
        and (device.memory_bytes == 0 or device.memory_bytes >= run.spec.memory_bytes)
        and (device.id, run.id) not in state.too_big
    )


def affords(state: State, run: RunState, device: DeviceState) -> bool:
    charge = budget.max_charge_microusd(run.spec, device.device_class, device.speed_factor)
    return charge <= state.budget_left(run)


def _best_pair(
    state: State, run: RunState, shards: Sequence[ShardState], devices: Sequence[DeviceState]
) -> tuple[ShardState, DeviceState]:
    """A device that has a waiting shard's data, else the device that will be done first with the first shard.

    A device whose earlier lease on a shard failed is the last choice for it.
    """
    by_data = {state.slice_of(shard).sha256: shard for shard in reversed(shards)}
    for device in devices:
        for sha256 in sorted(device.cached & by_data.keys()):
            if not _had_before(state, by_data[sha256], device):
                return by_data[sha256], device

    first = shards[0]

    def order(device: DeviceState) -> tuple[bool, float]:
        expected_us = budget.expected_gpu_us(run.spec, device.device_class, device.speed_factor)
        return _had_before(state, first, device), expected_us * state.standing(device.id).pace

    return first, min(devices, key=order)


def _had_before(state: State, shard: ShardState, device: DeviceState) -> bool:
    return any(lease.device_id == device.id for lease in state.leases_on(shard.id))
