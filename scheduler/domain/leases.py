"""How leases begin, end and come back, and what becomes of their shards. Why they do is decided elsewhere."""

from dataclasses import replace
from datetime import timedelta

from scheduler.domain import budget
from scheduler.domain.events import ResultReported
from scheduler.domain.state import DeviceState, LeaseState, RunState, ShardState
from scheduler.domain.transitions import LeasePhase, RoundPhase, ShardPhase
from scheduler.domain.turn import BlobRelease, Turn, lease_holder


def grant(turn: Turn, run: RunState, shard: ShardState, device: DeviceState) -> LeaseState:
    """Lease a pending shard to a device, reserving the most it can cost."""
    expected_us = budget.expected_gpu_us(run.spec, device.device_class, device.speed_factor)
    time = budget.lease_time(
        run.spec,
        expected_us=expected_us,
        pace=turn.state.standing(device.id).pace,
        slice_bytes=turn.state.slice_of(shard).bytes,
    )
    turn.change(shard, phase=ShardPhase.LEASED, attempts=shard.attempts + 1)
    lease = turn.put(
        LeaseState(
            id=turn.new_id(),
            run_id=run.id,
            round_id=shard.round_id,
            shard_id=shard.id,
            device_id=device.id,
            owner_id=device.owner_id,
            device_class=device.device_class,
            granted_at=turn.now,
            deadline_at=turn.now + time,
            expected_gpu_us=expected_us,
            rate_microusd=run.spec.rates[device.device_class],
            fee_basis_points=run.spec.fee_basis_points,
            max_charge_microusd=budget.max_charge_microusd(
                run.spec, device.device_class, device.speed_factor
            ),
        )
    )
    turn.send_lease(lease)
    return lease


def confirm(turn: Turn, lease: LeaseState, *, step: int = 0) -> None:
    """The device has the lease and works on it."""
    if step > lease.step:
        turn.state.moved_at[lease.id] = turn.now
    turn.state.resume_by.pop(lease.id, None)
    if lease.phase is not LeasePhase.RUNNING or step > lease.step:
        turn.change(lease, phase=LeasePhase.RUNNING, step=max(step, lease.step), ended_at=None, reason="")


def end(turn: Turn, lease: LeaseState, phase: LeasePhase, reason: str) -> None:
    """End a lease without an accepted result; its shard waits again unless another lease still lives on it."""
    turn.change(lease, phase=phase, reason=reason, ended_at=turn.now)
    shard = turn.state.shards[lease.shard_id]
    if shard.phase is ShardPhase.LEASED and not any(other.live for other in turn.state.leases_on(shard.id)):
        turn.change(shard, phase=ShardPhase.PENDING)
    if phase is not LeasePhase.EXPIRED:  # whose result may still come in useful
        turn.outcome.releases.append(BlobRelease(lease_holder(lease.id)))


def revoke(turn: Turn, lease: LeaseState, reason: str) -> None:
    """Take a live lease back from its device, which did nothing wrong."""
    if lease.phase is LeasePhase.REPORTED:
        turn.send_ack(lease.device_id, lease.id, refusal="late" if reason == "superseded" else reason)
    else:
        turn.send_revoke(lease.device_id, lease.id, reason)
    end(turn, lease, LeasePhase.REVOKED, reason)


def is_wanted_back(turn: Turn, lease: LeaseState) -> bool:
    """Whether an expired lease may live again: its shard is not done, its round open, and there is money for it."""
    run = turn.state.runs.get(lease.run_id)
    round_ = turn.state.rounds.get(lease.round_id)
    shard = turn.state.shards.get(lease.shard_id)
    if lease.phase is not LeasePhase.EXPIRED or run is None or round_ is None or shard is None:
        return False
    return (
        round_.phase is RoundPhase.OPEN
        and shard.phase in (ShardPhase.PENDING, ShardPhase.LEASED)
        and turn.state.budget_left(run) >= lease.max_charge_microusd
    )


def revive(turn: Turn, lease: LeaseState) -> None:
    """Let an expired lease run again: its device came back, and nobody else has its shard."""
    run = turn.state.runs[lease.run_id]
    shard = turn.state.shards[lease.shard_id]
    turn.change(shard, phase=ShardPhase.LEASED)
    time = budget.lease_time(
        run.spec,
        expected_us=lease.expected_gpu_us,
        pace=turn.state.standing(lease.device_id).pace,
        slice_bytes=turn.state.slice_of(shard).bytes,
    )
    confirm(turn, replace(lease, deadline_at=turn.now + time))


def report(turn: Turn, lease: LeaseState, event: ResultReported) -> None:
    """Keep what a device reports of a lease, and have it checked."""
    turn.state.resume_by.pop(lease.id, None)
    turn.state.asked.pop(lease.id, None)
    shard = turn.state.shards[lease.shard_id]
    if shard.phase is ShardPhase.PENDING:  # the lease had expired
        turn.change(shard, phase=ShardPhase.LEASED)
    reported = turn.change(
        lease,
        phase=LeasePhase.REPORTED,
        reason="",
        ended_at=None,
        step=event.steps,
        delta_sha256=event.delta_sha256,
        delta_bytes=event.delta_bytes,
        losses=event.losses,
        reported_gpu_us=event.gpu_us,
        turnaround_us=(turn.now - lease.granted_at) // timedelta(microseconds=1),
    )
    turn.ask_check(reported)
