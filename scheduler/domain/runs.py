"""How runs end: by themselves, by their buyer, or because one of their shards keeps failing."""

from accounts.domain.device_classes import DEVICE_CLASSES
from scheduler.domain import leases
from scheduler.domain.budget import is_priced
from scheduler.domain.events import BLAMED, RunCancelled, RunPaused, RunResumed
from scheduler.domain.limits import SHARD_FAILURE_DEVICES, SHARD_FAILURES
from scheduler.domain.state import LeaseState, RoundState, RunState
from scheduler.domain.transitions import LeasePhase, RoundPhase, RunPhase, ShardPhase
from scheduler.domain.turn import BlobRelease, RunEnded, Turn, lease_holder, run_holder

# Reasons of expired leases: the device stood still, moved but was slower than we thought, or was gone.
EXPIRED_STALLED, EXPIRED_SLOW, EXPIRED_LOST = "stalled", "slow", "lost"


def on_cancelled(turn: Turn, event: RunCancelled) -> None:
    run = turn.state.runs.get(event.run_id)
    if run is not None and run.open:
        end(turn, run, RunPhase.CANCELLED, because="cancelled", message="The buyer cancelled it.")


def on_paused(turn: Turn, event: RunPaused) -> None:
    """No new lease from now on. Devices that have one finish it: their work is paid from what is set aside."""
    run = turn.state.runs.get(event.run_id)
    if run is not None and run.phase is RunPhase.ACTIVE:
        turn.change(run, phase=RunPhase.PAUSED, waiting="")


def on_resumed(turn: Turn, event: RunResumed) -> None:
    run = turn.state.runs.get(event.run_id)
    if run is not None and run.phase is RunPhase.PAUSED:
        turn.change(run, phase=RunPhase.ACTIVE)


def end(turn: Turn, run: RunState, phase: RunPhase, *, because: str, message: str) -> None:
    """End a run: take back its leases, drop what its round has not done, and tell the buyer's side."""
    for lease in turn.state.live_in(run.id):
        leases.revoke(turn, lease, "cancelled")
    round_id = turn.state.current_round.get(run.id)
    if round_id is not None:
        close_round(turn, turn.state.rounds[round_id])
    turn.change(
        turn.state.runs[run.id],
        phase=phase,
        ended_because=because,
        ended_message=message,
        ended_at=turn.now,
        waiting="",
    )
    if run.outer_state_sha256:
        turn.outcome.releases.append(BlobRelease(run_holder(run.id), run.outer_state_sha256))
    turn.outcome.news.append(RunEnded(run.id))


def close_round(turn: Turn, round_: RoundState, **results: float | None) -> RoundState:
    """Close a round, with the results of its outer step or, when its run ends early, with none."""
    for shard in turn.state.shards_in(round_.id):
        if shard.phase in (ShardPhase.PENDING, ShardPhase.LEASED):
            turn.change(shard, phase=ShardPhase.DROPPED)
    for lease in turn.state.leases_in(round_.id):
        turn.outcome.releases.append(BlobRelease(lease_holder(lease.id)))
    return turn.change(round_, phase=RoundPhase.CLOSED, closed_at=turn.now, **results)


def end_if_shard_keeps_failing(turn: Turn, lease: LeaseState) -> None:
    """Fail the run when a shard has failed so often, on so many devices, that the shard must be at fault.

    One owner's devices may all lie, so their word is not enough while a device of somebody else's is there to ask.
    """
    run = turn.state.runs.get(lease.run_id)
    if run is None or not run.open:
        return
    failures = [other for other in turn.state.leases_on(lease.shard_id) if _is_failure(other)]
    devices = {failure.device_id for failure in failures}
    usable = [device for device in turn.state.devices.values() if is_priced(run.spec, device)]
    owners = {failure.owner_id for failure in failures}
    if len(owners) == 1 and any(device.owner_id not in owners for device in usable):
        return
    if len(failures) >= SHARD_FAILURES and len(devices) >= min(SHARD_FAILURE_DEVICES, max(len(usable), 1)):
        shard = turn.state.shards[lease.shard_id]
        labels = {DEVICE_CLASSES[f.device_class].label for f in failures if f.device_class in DEVICE_CLASSES}
        message = (
            f"Part {shard.index + 1} of a round failed {len(failures)} times on {len(devices)} devices "
            f"({', '.join(sorted(labels))}); the last failure was '{failures[-1].reason}'. "
            "Check the data for values that cannot be learnt from, or lower the learning rate."
        )
        end(turn, run, RunPhase.FAILED, because="shard_keeps_failing", message=message)


def _is_failure(lease: LeaseState) -> bool:
    """Whether a lease ended in a way that speaks against its shard as much as against its device."""
    match lease.phase:
        case LeasePhase.REFUSED:
            return True
        case LeasePhase.HANDED_BACK:
            return lease.reason in BLAMED
        case LeasePhase.EXPIRED:
            return lease.reason == EXPIRED_STALLED
        case _:
            return False
