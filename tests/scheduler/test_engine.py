"""A turn is one transaction: it happens as a whole or not at all, and a server killed at any point loses nothing."""

import random
from collections.abc import Callable
from dataclasses import replace
from uuid import UUID

import pytest
from django.db import DatabaseError

from accounts.models import DeviceNews
from blobs.models import BlobHold
from scheduler import store
from scheduler.domain import events as ev
from scheduler.domain import instructions as ins
from scheduler.engine import Engine, Mail
from scheduler.errors import LockLost, RunInvalid, RunNotFound
from scheduler.models import Inbox, Lease, Round, Run, RunNews, Shard
from scheduler.selectors import (
    accepted_leases,
    rounds_of,
    run_progress,
    why_waiting,
)
from scheduler.services import run_cancel, run_start

from .fleet_of import Clock, CrashingFleet, Fleet, ServerKilled, accepted_by_shard
from .training import digits_run
from .world import ADA, BO, CY, connected, spec

pytestmark = pytest.mark.django_db


def engine_with(clock: Clock, holder: str = "one") -> Engine:
    return Engine(holder=holder, clock=clock)


def started_engine(clock: Clock | None = None) -> Engine:
    engine = engine_with(clock or Clock())
    assert engine.start() is not None
    return engine


def turn(engine: Engine, *events: ev.Event) -> list[ins.Instruction]:
    return engine.turn([*(Mail(event) for event in events), *engine.collect()])


def test_a_run_that_is_started_is_taken_up_in_the_next_turn():
    engine = started_engine()
    run = run_start(spec=spec())
    turn(engine)
    assert run.rounds.get().shards.count() == 3
    assert not Inbox.objects.exists()


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"slices": ()}, "slices"),
        ({"budget_microusd": 0}, "budget_microusd"),
        ({"local_steps": 0}, "local_steps"),
        ({"metric": "beauty"}, "metric"),
        ({"rates": {}}, "rates"),
        ({"outer_momentum": 1.0}, "outer_momentum"),
    ],
)
def test_a_run_that_cannot_be_scheduled_is_refused_with_its_field(changes, field):
    with pytest.raises(RunInvalid) as caught:
        run_start(spec=spec(**changes))
    assert caught.value.field == field
    assert not Run.objects.exists()
    assert not Inbox.objects.exists()


def test_cancelling_ends_a_run_and_tells_the_buyers_side():
    engine = started_engine()
    run = run_start(spec=spec())
    turn(engine)
    run_cancel(run_id=run.id)
    turn(engine)
    run.refresh_from_db()
    assert run.state == "cancelled"
    assert [(news.kind, news.payload) for news in RunNews.objects.all()] == [
        ("run_ended", {"run_id": str(run.id)})
    ]


def test_a_run_that_does_not_exist_cannot_be_cancelled():
    with pytest.raises(RunNotFound):
        run_cancel(run_id=UUID(int=1))


def test_owners_news_reaches_the_sockets():
    engine = started_engine()
    turn(engine, connected(ADA), connected(BO))
    DeviceNews.publish("changed", device_id=str(ADA))
    DeviceNews.publish("removed", device_id=str(BO))
    assert turn(engine) == [
        ins.RefreshDevice(f"socket of {ADA}"),
        ins.CloseSession(f"socket of {BO}", "removed"),
    ]
    assert not DeviceNews.objects.exists()


def test_a_row_that_nobody_can_read_is_dropped_and_the_others_are_read(caplog):
    engine = started_engine()
    Inbox.publish("Nonsense", run_id="1")
    Inbox.publish("RunAdded", run_id="not an id")
    run = run_start(spec=spec())
    turn(engine)
    assert run.rounds.count() == 1
    assert not Inbox.objects.exists()
    assert caplog.text.count("it is dropped") == 2


def test_a_result_for_a_lease_that_is_not_the_devices_is_noted_with_the_device(caplog):
    engine = started_engine()
    run_start(spec=spec())
    turn(engine, connected(ADA))
    lease = Lease.objects.get()
    report = ev.ResultReported(BO, lease.id, "ab" * 32, 10, 1, 1, (0.5,))
    turn(engine, report)
    assert f"device {BO} reported a result for lease {lease.id}, which is not its own" in caplog.text
    caplog.clear()
    turn(engine, replace(report, device_id=ADA))
    assert caplog.text == ""


def test_what_a_device_says_cannot_pass_for_a_line_of_the_log(caplog):
    engine = started_engine()
    run_start(spec=spec())
    turn(engine, connected(ADA))
    turn(engine, ev.LeaseHandedBack(ADA, Lease.objects.get().id, "error", "oops\n2026 CRITICAL forged"))
    assert "oops" in caplog.text
    assert "\n2026 CRITICAL forged" not in caplog.text


def test_a_turn_that_cannot_be_stored_has_never_happened(monkeypatch):
    engine = started_engine()
    run = run_start(spec=spec())

    def fail(*_: object) -> None:
        raise DatabaseError("disk full")

    with monkeypatch.context() as patch:
        patch.setattr("scheduler.engine._delete_rows", fail)
        with pytest.raises(DatabaseError):
            turn(engine)
    assert not Round.objects.exists()
    with pytest.raises(RuntimeError):
        _ = engine.state
    engine.start()
    turn(engine)
    assert run.rounds.count() == 1


def test_only_one_process_dispatches():
    clock = Clock()
    first, second = engine_with(clock, "one"), engine_with(clock, "two")
    assert first.start() is not None
    assert second.start() is None
    first.stop()
    assert second.start() is not None


def test_a_stalled_dispatcher_loses_the_lock_and_its_batch_is_rolled_back():
    clock = Clock()
    first, second = engine_with(clock, "one"), engine_with(clock, "two")
    first.start()
    clock.pass_time(11)
    assert second.start() is not None
    run = run_start(spec=spec())
    with pytest.raises(LockLost):
        turn(first)
    assert not run.rounds.exists()
    assert Inbox.objects.count() == 1


def test_the_result_of_a_closed_round_is_recalled_and_acknowledged_again():
    clock = Clock()
    engine = started_engine(clock)
    fleet = Fleet(engine, clock, [ADA, BO, CY])
    run_start(spec=digits_run(rounds=2))
    fleet.connect()
    results = dict(fleet.results)
    fleet.report_all()
    while not Round.objects.filter(state="closed").exists():
        fleet.turn()
    lease = accepted_leases(Run.objects.get().id, 0)[0]
    again = turn(engine, results[lease.id])
    assert again == [ins.SendAck(f"socket of {lease.device_id}", lease.id, None, lease.charge_microusd)]


def run_until(done: Callable[[], bool], fleet: Fleet, most: int = 200) -> None:
    for _ in range(most):
        if done():
            return
        fleet.report_all()
    raise AssertionError(f"not done after {most} turns: {[str(lease) for lease in Lease.objects.all()]}")


def ended() -> bool:
    return not Run.objects.filter(state=Run.State.ACTIVE).exists()


def test_a_run_trains_to_its_end_and_tells_how_it_went():
    clock = Clock()
    fleet = Fleet(started_engine(clock), clock, [ADA, BO, CY])
    run = run_start(spec=digits_run(rounds=3))
    fleet.connect()
    assert why_waiting(run.id) is None
    run_until(ended, fleet)

    progress = run_progress(run.id)
    assert (progress.state, progress.ended_because, progress.rounds_done) == ("finished", "epochs", 3)
    assert progress.samples == 3 * 3 * 20 * 32
    assert progress.spent_microusd == sum(lease.charge_microusd for lease in accepted_leases(run.id))
    rounds = list(rounds_of(run.id))
    assert [round_.index for round_ in rounds] == [0, 1, 2]
    metrics = [round_.validation_metric or 0.0 for round_ in rounds]
    assert metrics[0] < metrics[2]
    assert metrics[2] > 0.8
    assert accepted_leases(run.id, 0).count() == 3
    assert [news.kind for news in RunNews.objects.all()] == ["round_closed"] * 3 + ["run_ended"]
    ada = Lease.objects.filter(device_id=ADA)
    assert list(ada.values_list("state", flat=True)) == [Lease.State.ACCEPTED] * 3


def test_a_run_that_ended_keeps_no_blob_but_its_parameters():
    clock = Clock()
    fleet = Fleet(started_engine(clock), clock, [ADA, BO, CY])
    run = run_start(spec=digits_run(rounds=2))
    fleet.connect()
    run_until(ended, fleet)
    run.refresh_from_db()
    holds = BlobHold.objects.exclude(holder="job:digits").values_list("holder", "blob_id")
    assert list(holds) == [(f"run:{run.id}", run.params_sha256)]


@pytest.mark.parametrize("seed", range(4))
def test_a_server_that_is_killed_at_any_point_finishes_the_run_and_accepts_every_shard_once(seed):
    """Killed between the commit of a turn and the sending of its instructions, again and again."""
    clock = Clock()
    fleet = CrashingFleet(started_engine(clock), clock, [ADA, BO, CY], random.Random(seed))
    run = run_start(spec=digits_run(rounds=3))
    fleet.restart()
    for _ in range(300):
        if ended():
            break
        try:
            fleet.report_all()
        except ServerKilled:
            fleet.engine = engine_with(clock)
            fleet.restart()
    run.refresh_from_db()
    assert (run.state, run.ended_because) == ("finished", "epochs")
    assert fleet.crashes > 0
    assert set(accepted_by_shard().values()) == {1}
    done = Shard.objects.filter(state=Shard.State.DONE).count()
    assert done == len(accepted_by_shard())
    assert run.spent_microusd == sum(lease.charge_microusd for lease in accepted_leases(run.id))
    assert store.load().persisted()["standings"] == fleet.engine.state.standings
    assert all(standing.failures_in_a_row == 0 for standing in fleet.engine.state.standings.values())
