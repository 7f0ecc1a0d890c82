"""What devices report of their leases, and what the check of a result says. Each report may come more than once."""

from common.money import charge_with_carry, metered_gpu_us
from scheduler.domain import devices, leases, rounds, runs, standing
from scheduler.domain.events import BLAMED, LeaseHandedBack, LeaseProgress, ResultChecked, ResultReported
from scheduler.domain.state import LeaseState
from scheduler.domain.transitions import UNDER_WAY, LeasePhase, ShardPhase
from scheduler.domain.turn import BlobRelease, Turn, lease_holder

NOT_YOUR_LEASE = "not_your_lease"
LATE = "late"


def on_progress(turn: Turn, event: LeaseProgress) -> None:
    lease = turn.state.lease(event.lease_id)
    if lease is None or lease.device_id != event.device_id:
        turn.send_revoke(event.device_id, event.lease_id, "unknown")
    elif lease.phase in UNDER_WAY:
        leases.confirm(turn, lease, step=event.step)
    elif not lease.live:
        turn.send_revoke(event.device_id, event.lease_id, lease.reason or "expired")


def on_handed_back(turn: Turn, event: LeaseHandedBack) -> None:
    lease = turn.state.lease(event.lease_id)
    if lease is None or lease.device_id != event.device_id or lease.phase not in UNDER_WAY:
        return
    leases.end(turn, lease, LeasePhase.HANDED_BACK, event.reason)
    if event.reason in BLAMED:
        standing.blame(turn, event.device_id)
        runs.end_if_shard_keeps_failing(turn, lease)
    elif event.reason == "shutdown":
        devices.on_leaving(turn, event.device_id)
    else:
        standing.rest(turn, event.device_id)
    if event.reason == "too_big":
        turn.state.too_big.add((event.device_id, lease.run_id))


def on_reported(turn: Turn, event: ResultReported) -> None:
    """Take a result to be checked, once; repeat the answer to one that is known."""
    lease = turn.state.lease(event.lease_id)
    if lease is None or lease.device_id != event.device_id:
        turn.send_ack(event.device_id, event.lease_id, refusal=NOT_YOUR_LEASE)
    elif lease.phase in UNDER_WAY or leases.is_wanted_back(turn, lease):
        leases.report(turn, lease, event)
    elif lease.phase is LeasePhase.ACCEPTED:
        turn.send_ack(lease.device_id, lease.id, refusal=None, earned_microusd=lease.earned_microusd)
    elif lease.phase is not LeasePhase.REPORTED:
        turn.send_ack(
            lease.device_id, lease.id, refusal=lease.reason if lease.phase is LeasePhase.REFUSED else LATE
        )
        turn.outcome.releases.append(BlobRelease(lease_holder(lease.id)))


def on_checked(turn: Turn, event: ResultChecked) -> None:
    lease = turn.state.leases.get(event.lease_id)
    if lease is None or lease.phase is not LeasePhase.REPORTED:
        return
    if event.refusal is None:
        _accept(turn, lease, event.delta_norm)
    else:
        leases.end(turn, lease, LeasePhase.REFUSED, event.refusal)
        turn.send_ack(lease.device_id, lease.id, refusal=event.refusal)
        standing.blame(turn, lease.device_id)
        runs.end_if_shard_keeps_failing(turn, lease)


def _accept(turn: Turn, lease: LeaseState, delta_norm: float) -> None:
    """Meter and price a result, once for its shard; whoever else works on the shard may stop."""
    gpu_us = metered_gpu_us(
        reported_us=lease.reported_gpu_us,
        turnaround_us=lease.turnaround_us,
        expected_us=lease.expected_gpu_us,
    )
    run = turn.state.runs[lease.run_id]
    charge_microusd, carry = charge_with_carry(
        gpu_us=gpu_us, rate_microusd_per_gpu_second=lease.rate_microusd, carry=run.charge_carry
    )
    lease = turn.change(
        lease,
        phase=LeasePhase.ACCEPTED,
        ended_at=turn.now,
        delta_norm=delta_norm,
        metered_gpu_us=gpu_us,
        charge_microusd=charge_microusd,
    )
    turn.change(run, spent_microusd=run.spent_microusd + charge_microusd, charge_carry=carry)
    turn.change(turn.state.shards[lease.shard_id], phase=ShardPhase.DONE)
    for other in turn.state.leases_on(lease.shard_id):
        if other.live:
            leases.revoke(turn, other, "superseded")
    turn.send_ack(lease.device_id, lease.id, refusal=None, earned_microusd=lease.earned_microusd)
    standing.praise(turn, lease)
    rounds.on_shard_done(turn, turn.state.rounds[lease.round_id])
