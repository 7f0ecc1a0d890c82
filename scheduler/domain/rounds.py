"""Rounds: which slices they train, when they close, and what follows from their outer step."""

from datetime import timedelta

from scheduler.domain import budget, leases, runs
from scheduler.domain.events import RoundAggregated, RoundFailed, RunAdded
from scheduler.domain.limits import QUORUM, RECHECK_AFTER, STRAGGLER_FACTOR, STRAGGLER_MIN
from scheduler.domain.state import LeaseState, RoundState, RunState, ShardState
from scheduler.domain.transitions import LeasePhase, RoundPhase, RunPhase, ShardPhase
from scheduler.domain.turn import BlobRelease, RoundClosed, Turn, run_holder


def on_run_added(turn: Turn, event: RunAdded) -> None:
    run = turn.state.runs.get(event.run_id)
    if run is not None and run.open and run.id not in turn.state.current_round:
        open_round(turn, run, index=0)


def open_round(turn: Turn, run: RunState, *, index: int) -> None:
    """Open a round from the newest parameters, with the next slices of the epoch."""
    taken, pending, epoch = take_slices(run)
    turn.change(run, pending_slices=pending, epoch=epoch)
    round_ = turn.put(
        RoundState(
            id=turn.new_id(),
            run_id=run.id,
            index=index,
            params_sha256=run.params_sha256,
            outer_state_sha256=run.outer_state_sha256,
            opened_at=turn.now,
        )
    )
    for shard_index, slice_index in enumerate(taken):
        turn.put(
            ShardState(
                id=turn.new_id(),
                run_id=run.id,
                round_id=round_.id,
                index=shard_index,
                slice_index=slice_index,
                seed=run.spec.shard_seed(index, shard_index),
            )
        )


def take_slices(run: RunState) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """(slices of the next round, slices still pending, epoch).

    An epoch that runs out is followed by the next one in the same round, and a slice that both hold is not
    taken twice. So at any time each slice has been taken or is pending exactly `epoch` times.
    """
    pending, epoch = run.pending_slices, run.epoch
    if len(set(pending)) < run.spec.shards_in_a_round:
        pending, epoch = pending + run.spec.epoch_order(epoch), epoch + 1
    taken: list[int] = []
    left: list[int] = []
    for slice_index in pending:
        wanted = len(taken) < run.spec.shards_in_a_round and slice_index not in taken
        (taken if wanted else left).append(slice_index)
    return tuple(taken), tuple(left), epoch


def quorum_of(shards: int) -> int:
    numerator, denominator = QUORUM
    return -(-shards * numerator // denominator)


def on_shard_done(turn: Turn, round_: RoundState) -> None:
    """Set the round's deadline when a quorum of results is in, by how long the slowest of them took."""
    shards = turn.state.shards_in(round_.id)
    done = sum(shard.phase is ShardPhase.DONE for shard in shards)
    if round_.deadline_at is None and done >= quorum_of(len(shards)):
        slowest_us = max(lease.turnaround_us for lease in accepted(turn, round_))
        patience = max(STRAGGLER_MIN, timedelta(microseconds=STRAGGLER_FACTOR * slowest_us))
        round_ = turn.change(round_, deadline_at=turn.now + patience)
    close_if_due(turn, round_)


def close_if_due(turn: Turn, round_: RoundState) -> None:
    """Begin the outer step when every shard is done, or the deadline has passed and no check is under way."""
    if round_.phase is not RoundPhase.OPEN:
        return
    open_shards = any(shard.phase is not ShardPhase.DONE for shard in turn.state.shards_in(round_.id))
    if open_shards:
        if round_.deadline_at is None or turn.now < round_.deadline_at:
            return
        checking = any(lease.phase is LeasePhase.REPORTED for lease in turn.state.leases_in(round_.id))
        if checking and turn.now < round_.deadline_at + RECHECK_AFTER:
            return
    begin_aggregation(turn, round_)


def begin_aggregation(turn: Turn, round_: RoundState) -> None:
    """Close a round to results. What is not in is revoked, and its slices are the first of the next round."""
    for lease in turn.state.leases_in(round_.id):
        if lease.live:
            leases.revoke(turn, lease, "superseded")
    dropped: list[int] = []
    for shard in turn.state.shards_in(round_.id):
        if shard.phase is not ShardPhase.DONE:
            turn.change(shard, phase=ShardPhase.DROPPED)
            dropped.append(shard.slice_index)
    run = turn.state.runs[round_.run_id]
    turn.change(run, pending_slices=(*dropped, *run.pending_slices))
    turn.ask_aggregation(turn.change(round_, phase=RoundPhase.AGGREGATING))


def on_aggregated(turn: Turn, event: RoundAggregated) -> None:
    run = turn.state.runs.get(event.run_id)
    round_ = _aggregating(turn, event)
    if run is None or round_ is None:
        return  # the run has ended meanwhile, or this is told again
    losses = [sum(lease.losses) / len(lease.losses) for lease in accepted(turn, round_) if lease.losses]
    runs.close_round(
        turn,
        round_,
        training_loss=sum(losses) / len(losses) if losses else None,
        validation_loss=event.validation_loss,
        validation_metric=event.validation_metric,
    )
    for before, after in (
        (round_.params_sha256, event.params_sha256),
        (round_.outer_state_sha256, event.outer_state_sha256),
    ):
        if before and before != after:
            turn.outcome.releases.append(BlobRelease(run_holder(run.id), before))
    run = turn.change(run, params_sha256=event.params_sha256, outer_state_sha256=event.outer_state_sha256)
    turn.outcome.news.append(RoundClosed(run.id, round_.index))
    _go_on(turn, run, round_.index, event.validation_metric)


def on_failed(turn: Turn, event: RoundFailed) -> None:
    run = turn.state.runs.get(event.run_id)
    if run is not None and _aggregating(turn, event) is not None:
        runs.end(turn, run, RunPhase.FAILED, because=event.code, message=event.message)


def end_if_used_up(turn: Turn, run: RunState) -> None:
    """End a run whose money is used up, keeping what it has learnt: a round in part is aggregated first."""
    round_id = turn.state.current_round.get(run.id)
    if run.phase is RunPhase.PAUSED:  # its money waits with it
        return
    if round_id is None or turn.state.live_in(run.id) or not budget.is_used_up(turn.state, run):
        return
    round_ = turn.state.rounds[round_id]
    if round_.phase is not RoundPhase.OPEN:
        return
    if accepted(turn, round_):
        begin_aggregation(turn, round_)
    else:
        _end_for_budget(turn, run)


def accepted(turn: Turn, round_: RoundState) -> list[LeaseState]:
    return [lease for lease in turn.state.leases_in(round_.id) if lease.phase is LeasePhase.ACCEPTED]


def _go_on(turn: Turn, run: RunState, index: int, metric: float) -> None:
    """After a closed round: the next one, or the end."""
    if _reaches_target(run, metric):
        message = f"It reached the target {run.spec.metric} of {run.spec.target_metric:g}."
        runs.end(turn, run, RunPhase.FINISHED, because="target", message=message)
    elif index + 1 >= run.spec.rounds_planned:
        runs.end(turn, run, RunPhase.FINISHED, because="epochs", message="It trained all its epochs.")
    elif budget.is_used_up(turn.state, run):
        _end_for_budget(turn, run)
    else:
        open_round(turn, run, index=index + 1)


def _reaches_target(run: RunState, metric: float) -> bool:
    target = run.spec.target_metric
    if target is None:
        return False
    return metric >= target if run.spec.metric == "accuracy" else metric <= target


def _end_for_budget(turn: Turn, run: RunState) -> None:
    message = "Its budget is used up; the model is as good as the budget allowed."
    runs.end(turn, run, RunPhase.FINISHED, because="budget", message=message)


def _aggregating(turn: Turn, event: RoundAggregated | RoundFailed) -> RoundState | None:
    round_id = turn.state.current_round.get(event.run_id)
    round_ = turn.state.rounds.get(round_id) if round_id else None
    if round_ is None or round_.phase is not RoundPhase.AGGREGATING or round_.index != event.round_index:
        return None
    return round_
