"""Which device gets which shard: eligible devices only, one lease each, buyers served fairly, cached data first."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

from scheduler.domain import budget, leases, standing
from scheduler.domain.state import DeviceState, LeaseState, RunState, ShardState, State
from scheduler.domain.transitions import RoundPhase, RunPhase, ShardPhase
from scheduler.domain.turn import Turn


@dataclass(frozen=True, slots=True)
class Offer:
    """A free device that one run could use: how soon it would be done with a shard, and what that costs at most."""

    device: DeviceState
    turnaround_us: float
    max_charge_microusd: int


def place_shards(turn: Turn) -> None:
    """Lease pending shards to free devices until one of them runs out."""
    state = turn.state
    waiting = pending_shards(state)
    free = {device.id: device for device in state.devices.values() if waiting and is_free(turn, device)}
    offers: dict[UUID, list[Offer]] = {}
    while free and waiting:
        run = state.runs[state.fairness.first({i: state.runs[i].spec.buyer_id for i in waiting})]
        if run.id not in offers:
            offers[run.id] = _offers(state, run, free.values())
        left = state.budget_left(run)
        usable = [o for o in offers[run.id] if o.device.id in free and o.max_charge_microusd <= left]
        if not usable:
            del waiting[run.id]
            continue
        shard, device = _best_pair(state, waiting[run.id], usable)
        lease = leases.grant(turn, run, shard, device)
        state.fairness.serve(buyer_id=run.spec.buyer_id, run_id=run.id, cost_us=lease.expected_gpu_us)
        del free[device.id]
        waiting[run.id].remove(shard)
        if not waiting[run.id]:
            del waiting[run.id]


def pending_shards(state: State) -> dict[UUID, list[ShardState]]:
    """Shards that a free device could take, by run: those that wait, in their order, then those in doubt.

    A run that is paused has none to give.
    """
    waiting = {}
    for run_id, round_id in state.current_round.items():
        if state.rounds[round_id].phase is RoundPhase.OPEN and state.runs[run_id].phase is RunPhase.ACTIVE:
            shards = state.shards_in(round_id)
            pending = [shard for shard in shards if shard.phase is ShardPhase.PENDING]
            pending += [shard for shard in shards if is_in_doubt(state, shard)]
            if pending:
                waiting[run_id] = pending
    return waiting


def is_in_doubt(state: State, shard: ShardState) -> bool:
    """Whether whoever has a shard has gone and may come back: a device with nothing else to do starts it too.

    The first result counts. It costs the buyer nothing, since a shard is paid once, and spares the round the wait.
    """
    away = [
        lease.id in state.resume_by and state.resume_by[lease.id].blamed for lease in _live_on(state, shard)
    ]
    return bool(away) and all(away)


def is_free(turn: Turn, device: DeviceState) -> bool:
    """Whether a device may be given work now: not blocked, leaving or benched, and without a lease."""
    return (
        device.blocked is None
        and not device.leaving
        and not turn.state.live_leases_of_device.of(device.id)
        and not standing.is_benched(turn.state.standing(device.id), turn.now)
    )


def fits(state: State, run: RunState, device: DeviceState) -> bool:
    """Whether a run's work can be done on a device: its class has a price, it is large enough as far as is known."""
    return (
        budget.is_priced(run.spec, device)
        and has_memory(run, device)
        and has_buffer(run, device)
        and (device.id, run.id) not in state.too_big
    )


def has_memory(run: RunState, device: DeviceState) -> bool:
    return device.memory_bytes == 0 or device.memory_bytes >= run.spec.memory_bytes


def has_buffer(run: RunState, device: DeviceState) -> bool:
    return device.max_buffer_bytes == 0 or device.max_buffer_bytes >= run.spec.largest_buffer_bytes


def affords(state: State, run: RunState, device: DeviceState) -> bool:
    charge = budget.max_charge_microusd(run.spec, device.device_class, device.speed_factor)
    return charge <= state.budget_left(run)


def _offers(state: State, run: RunState, devices: Iterable[DeviceState]) -> list[Offer]:
    """What the devices that fit a run offer it, the soonest first."""

    def offer(device: DeviceState) -> Offer:
        kind = (run.spec, device.device_class, device.speed_factor)
        pace = state.standing(device.id).pace
        return Offer(device, budget.expected_gpu_us(*kind) * pace, budget.max_charge_microusd(*kind))

    fitting = [offer(device) for device in devices if fits(state, run, device)]
    return sorted(fitting, key=lambda offer: offer.turnaround_us)


def _best_pair(
    state: State, shards: Sequence[ShardState], usable: Sequence[Offer]
) -> tuple[ShardState, DeviceState]:
    """A device that has a waiting shard's data, else the device that will be done first with the first shard.

    A device that had a lease on a shard before is the last choice for it.
    """
    by_data = {state.slice_of(shard).sha256: shard for shard in reversed(shards)}
    for offer in usable:
        for sha256 in sorted(offer.device.cached & by_data.keys()):
            if not _had_before(state, by_data[sha256], offer.device):
                return by_data[sha256], offer.device
    fresh = (offer.device for offer in usable if not _had_before(state, shards[0], offer.device))
    return shards[0], next(fresh, usable[0].device)


def _live_on(state: State, shard: ShardState) -> list[LeaseState]:
    return [lease for lease in state.leases_on(shard.id) if lease.live]


def _had_before(state: State, shard: ShardState, device: DeviceState) -> bool:
    return any(lease.device_id == device.id for lease in state.leases_on(shard.id))
