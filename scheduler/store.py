"""Between the scheduler's memory and its rows.

`load` builds the state of everything under way; `save` stores what a turn changed, in the caller's transaction. A
state saved and loaded again is the same in its persisted part.
"""

from collections.abc import Iterable
from dataclasses import fields
from typing import Any, TypeVar
from uuid import UUID

from django.db import models as db

from blobs.services import blob_release
from common.wake import SETTLER, wake_on_commit
from scheduler import models
from scheduler.domain.spec import DataSlice, RunSpec
from scheduler.domain.state import (
    LeaseState,
    RoundState,
    RunState,
    ShardState,
    SpellState,
    StandingState,
    State,
)
from scheduler.domain.transitions import OPEN_RUN, LeasePhase, RoundPhase, RunPhase, ShardPhase
from scheduler.domain.turn import Outcome, RoundClosed

_SPEC_FIELDS = [f.name for f in fields(RunSpec) if f.name != "slices"]
_RUN_FIELDS = [
    "ended_because", "ended_message", "ended_at", "params_sha256", "outer_state_sha256",
    "spent_microusd", "charge_carry", "epoch", "waiting", "waiting_bytes",
]  # fmt: skip
_ROUND_FIELDS = [f.name for f in fields(RoundState) if f.name not in ("id", "phase")]
_SHARD_FIELDS = ["round_id", "index", "slice_index", "seed", "attempts"]
_LEASE_FIELDS = [
    f.name for f in fields(LeaseState) if f.name not in ("id", "run_id", "round_id", "phase", "losses")
]
_SPELL_FIELDS = [f.name for f in fields(SpellState)]
_STANDING_FIELDS = [f.name for f in fields(StandingState) if f.name != "device_id"]


def load() -> State:
    """Runs that have not ended with the shards and leases of their current rounds, and how devices have behaved."""
    state = State()
    for run in models.Run.objects.filter(state__in=list(OPEN_RUN)).order_by("created_at", "id"):
        state.put(run_from_row(run))
    current = models.Round.objects.filter(run__state__in=list(OPEN_RUN)).exclude(
        state=models.Round.State.CLOSED
    )
    for round_ in current:
        state.put(_round_from_row(round_))
    shards = models.Shard.objects.filter(round__in=current).select_related("round")
    for shard in shards.order_by("round", "index"):
        state.put(_shard_from_row(shard))
    leases = models.Lease.objects.filter(shard__round__in=current).select_related("shard__round")
    for lease in leases.order_by("granted_at", "id"):
        state.put(lease_from_row(lease))
    for row in models.Standing.objects.all():
        standing = StandingState(row.device_id, **_values(row, _STANDING_FIELDS))
        state.standings[standing.device_id] = standing
    for open_spell in models.Spell.objects.filter(ended_at=None):
        state.spells[open_spell.device_id] = SpellState(**_values(open_spell, _SPELL_FIELDS))
    return state


def recall(state: State, *, run_ids: Iterable[UUID], lease_ids: Iterable[UUID]) -> None:
    """Bring in what events name and the state does not hold: runs just added, leases of closed rounds."""
    unknown_runs = [run_id for run_id in run_ids if run_id not in state.runs]
    if unknown_runs:
        added = models.Run.objects.filter(pk__in=unknown_runs, state__in=list(OPEN_RUN))
        for run in added.order_by("created_at", "id"):
            state.put(run_from_row(run))
    unknown_leases = [lease_id for lease_id in lease_ids if lease_id not in state.leases]
    if unknown_leases:
        past = models.Lease.objects.filter(pk__in=unknown_leases).select_related("shard__round")
        state.past.update((lease.id, lease_from_row(lease)) for lease in past)


def save(outcome: Outcome) -> None:
    """Store a turn's changes, let go of blobs, and publish its news."""
    changed = outcome.changed
    _update_runs(changed.runs.values())
    _upsert(
        models.Round, [_row(models.Round, r, _ROUND_FIELDS, state=r.phase) for r in changed.rounds.values()]
    )
    _upsert(
        models.Shard, [_row(models.Shard, s, _SHARD_FIELDS, state=s.phase) for s in changed.shards.values()]
    )
    _upsert(
        models.Lease,
        [
            _row(models.Lease, lease, _LEASE_FIELDS, state=lease.phase, losses=list(lease.losses))
            for lease in changed.leases.values()
        ],
    )
    standings = [
        models.Standing(device_id=standing.device_id, **_values(standing, _STANDING_FIELDS))
        for standing in changed.standings.values()
    ]
    _upsert(models.Standing, standings)
    # Those that have ended first, as a device has one open spell at any time.
    spells = sorted(changed.spells.values(), key=lambda spell: spell.ended_at is None)
    _upsert(models.Spell, [models.Spell(**_values(spell, _SPELL_FIELDS)) for spell in spells])
    for release in outcome.releases:
        blob_release(holder=release.holder, sha256=release.sha256)
    for news in outcome.news:
        if isinstance(news, RoundClosed):
            models.RunNews.publish("round_closed", run_id=str(news.run_id), round_index=news.round_index)
        else:
            models.RunNews.publish("run_ended", run_id=str(news.run_id))
    if outcome.news:
        wake_on_commit(SETTLER)


def spec_from_row(row: models.Run) -> RunSpec:
    slices = tuple(DataSlice(**data_slice) for data_slice in row.slices)
    return RunSpec(slices=slices, **_values(row, _SPEC_FIELDS))


def spec_to_row(spec: RunSpec) -> models.Run:
    slices = [{"sha256": s.sha256, "rows": s.rows, "bytes": s.bytes} for s in spec.slices]
    values = _values(spec, _SPEC_FIELDS) | {"rates": dict(spec.rates)}
    return models.Run(slices=slices, params_sha256=spec.initial_params_sha256, **values)


def run_from_row(row: models.Run) -> RunState:
    return RunState(
        spec=spec_from_row(row),
        phase=RunPhase(row.state),
        pending_slices=tuple(row.pending_slices),
        **_values(row, _RUN_FIELDS),
    )


def lease_from_row(row: models.Lease) -> LeaseState:
    return LeaseState(
        id=row.id,
        run_id=row.shard.round.run_id,
        round_id=row.shard.round_id,
        phase=LeasePhase(row.state),
        losses=tuple(row.losses),
        **_values(row, _LEASE_FIELDS),
    )


def _round_from_row(row: models.Round) -> RoundState:
    return RoundState(id=row.id, phase=RoundPhase(row.state), **_values(row, _ROUND_FIELDS))


def _shard_from_row(row: models.Shard) -> ShardState:
    return ShardState(
        id=row.id, run_id=row.round.run_id, phase=ShardPhase(row.state), **_values(row, _SHARD_FIELDS)
    )


def _update_runs(runs: Iterable[RunState]) -> None:
    """Only what a run's progress changes; its inputs were stored when it was added and stay."""
    for run in runs:
        values = _values(run, _RUN_FIELDS)
        models.Run.objects.filter(pk=run.id).update(
            state=run.phase, pending_slices=list(run.pending_slices), **values
        )


def _values(source: object, names: Iterable[str]) -> dict[str, Any]:
    return {name: getattr(source, name) for name in names}


Row = TypeVar("Row", models.Round, models.Shard, models.Lease)
AnyRow = TypeVar("AnyRow", models.Round, models.Shard, models.Lease, models.Standing, models.Spell)


def _row(model: type[Row], entity: Any, names: Iterable[str], **values: Any) -> Row:
    return model(id=entity.id, **_values(entity, names), **values)


def _upsert(model: type[AnyRow], rows: list[AnyRow]) -> None:
    """Insert rows or replace those of the same key, in one statement."""
    key: db.Field[Any, Any] = model._meta.pk
    others = [field.name for field in model._meta.concrete_fields if not field.primary_key]
    model._default_manager.bulk_create(
        rows, update_conflicts=True, unique_fields=[key.name], update_fields=others
    )
