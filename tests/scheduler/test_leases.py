"""Leases: granted, confirmed, resumed, reported, expired; each result is taken once and paid once."""

from datetime import timedelta

import pytest

from scheduler.domain import events as ev
from scheduler.domain import instructions as ins
from scheduler.domain.transitions import LIVE, LeasePhase, ShardPhase

from .world import ADA, BO, CY, connected, started


def test_every_free_device_gets_one_lease():
    world, _ = started()
    assert {world.lease_of(device).shard_id for device in (ADA, BO, CY)} == set(world.state.shards)
    assert len(world.sent(ins.SendLease)) == 3


def test_a_lease_that_nobody_confirms_is_sent_again_after_five_seconds():
    world, _ = started(ADA)
    lease = world.lease_of(ADA)
    assert world.pass_time(4).instructions == []
    assert world.pass_time(1).instructions == [ins.SendLease(f"socket of {ADA}", lease.id)]
    world.send(ev.LeaseProgress(ADA, lease.id, 0))
    assert world.pass_time(6).instructions == []


def test_an_accepted_result_is_metered_priced_and_acknowledged():
    world, run = started(ADA)
    lease = world.lease_of(ADA)
    world.pass_time(2)
    world.report(lease, gpu_us=1_200_000)
    assert world.sent(ins.CheckResult) == [ins.CheckResult(lease.id)]
    world.check(lease)
    done = world.now_lease(lease)
    assert (done.phase, done.metered_gpu_us, done.charge_microusd) == (LeasePhase.ACCEPTED, 1_200_000, 12_000)
    assert world.sent(ins.SendAck) == [ins.SendAck(f"socket of {ADA}", lease.id, None, 12_000)]
    assert world.state.runs[run.id].spent_microusd == 12_000


@pytest.mark.parametrize(("claimed_us", "seconds", "metered_us"), [
    (9_000_000, 2, 1_500_000),  # never more than 1.5 times what the work should take
    (9_000_000, 1, 1_000_000),  # nor than the time that passed
    (500_000, 2, 500_000),
])  # fmt: skip
def test_a_slow_or_lying_device_cannot_bill_more_than_the_work_is_worth(claimed_us, seconds, metered_us):
    world, _ = started(ADA)
    lease = world.lease_of(ADA)
    world.pass_time(seconds)
    world.report(lease, gpu_us=claimed_us)
    world.check(lease)
    assert world.now_lease(lease).metered_gpu_us == metered_us


def test_the_same_result_submitted_several_times_is_paid_once():
    world, run = started(ADA)
    lease = world.lease_of(ADA)
    world.pass_time(1)
    world.report(lease)
    world.report(lease)
    assert world.outcome.instructions == []
    world.check(lease)
    world.check(lease)
    spent = world.state.runs[run.id].spent_microusd
    world.report(lease)
    assert world.sent(ins.SendAck) == [ins.SendAck(f"socket of {ADA}", lease.id, None, 10_000)]
    assert world.state.runs[run.id].spent_microusd == spent == 10_000


def test_a_result_for_the_lease_of_another_device_is_refused():
    world, _ = started()
    lease = world.lease_of(BO)
    world.report(lease, device=ADA)
    assert world.refusals() == ["not_your_lease"]
    assert world.now_lease(lease).phase is LeasePhase.GRANTED


def test_a_refused_result_is_not_paid_and_its_shard_goes_to_another_device():
    world, run = started(ADA, BO, shards_per_round=1)
    lease = world.lease_of(ADA)
    world.report(lease)
    world.check(lease, refusal="delta_not_finite")
    assert world.refusals() == ["delta_not_finite"]
    assert world.state.runs[run.id].spent_microusd == 0
    assert world.lease_of(BO).shard_id == lease.shard_id
    world.report(lease)
    assert world.refusals() == ["delta_not_finite"]


def test_progress_of_a_lease_that_is_over_is_answered_with_a_revoke():
    world, _ = started(ADA)
    lease = world.lease_of(ADA)
    world.hand_back(ADA, "busy")
    world.send(ev.LeaseProgress(ADA, lease.id, 1))
    assert world.revoked() == [(lease.id, "busy")]


def test_an_expired_lease_is_taken_back_and_its_shard_goes_to_another_device():
    world, _ = started(ADA, BO, shards_per_round=1)
    lease = world.lease_of(ADA)
    world.send(ev.LeaseProgress(ADA, lease.id, 0))
    world.pass_time(31)
    assert world.now_lease(lease).phase is LeasePhase.EXPIRED
    assert (lease.id, "expired") in world.revoked()
    assert world.lease_of(BO).shard_id == lease.shard_id


def test_a_result_after_its_deadline_is_taken_while_the_shard_still_needs_it():
    world, _ = started(ADA, BO, shards_per_round=1)
    late = world.lease_of(ADA)
    world.pass_time(31)
    other = world.lease_of(BO)
    world.report(late)
    world.check(late)
    assert world.now_lease(late).phase is LeasePhase.ACCEPTED
    assert world.now_lease(other).phase is LeasePhase.REVOKED
    assert (other.id, "superseded") in world.revoked()


def test_a_result_after_its_deadline_is_late_once_the_shard_is_done():
    world, _ = started(ADA, BO, shards_per_round=2)
    late = world.lease_of(ADA)
    world.finish(BO)
    world.pass_time(31)
    assert world.lease_of(BO).shard_id == late.shard_id
    world.finish(BO)
    world.report(late)
    assert world.refusals() == ["late"]
    assert world.now_lease(late).charge_microusd == 0


def test_a_lost_device_has_twenty_seconds_to_come_back_to_its_lease():
    world, _ = started(ADA, shards_per_round=1)
    lease = world.lease_of(ADA)
    world.disconnect(ADA)
    world.pass_time(19)
    world.connect(ADA, session_id="new", resumed=(lease.id,))
    world.pass_time(5)
    assert world.now_lease(lease).phase is LeasePhase.RUNNING


def test_an_idle_device_starts_on_the_shard_of_one_that_has_gone_and_the_first_result_counts():
    world, run = started(ADA, shards_per_round=1)
    left = world.lease_of(ADA)
    world.disconnect(ADA)
    world.connect(BO)
    assert world.lease_of(BO).shard_id == left.shard_id
    assert world.now_lease(left).phase in LIVE  # and may still be resumed
    world.pass_time(1)
    done = world.finish(BO)
    assert world.now_lease(done).phase is LeasePhase.ACCEPTED
    assert (world.now_lease(left).phase, world.now_lease(left).reason) == (LeasePhase.REVOKED, "superseded")
    assert world.state.runs[run.id].spent_microusd == world.now_lease(done).charge_microusd


def test_a_device_that_comes_back_first_keeps_its_shard_and_is_the_one_paid():
    world, run = started(ADA, shards_per_round=1)
    left = world.lease_of(ADA)
    world.disconnect(ADA)
    world.connect(BO)
    spare = world.lease_of(BO)
    world.pass_time(1)
    world.connect(ADA, session_id="new", resumed=(left.id,))
    world.report(left)
    world.check(left)
    assert world.now_lease(left).phase is LeasePhase.ACCEPTED
    assert world.now_lease(spare).phase is LeasePhase.REVOKED
    assert world.state.runs[run.id].spent_microusd == world.now_lease(left).charge_microusd


def test_waiting_shards_come_before_those_in_doubt():
    world, _ = started(ADA, shards_per_round=2)
    left = world.lease_of(ADA)
    world.disconnect(ADA)
    world.connect(BO)
    assert world.lease_of(BO).shard_id != left.shard_id


def test_many_small_results_are_charged_what_they_come_to_together():
    world, run = started(step_flops=30e9 / 1e6, rates={"laptop-cpu": 333_333})  # a microsecond of work each
    leases = [world.lease_of(device) for device in (ADA, BO, CY)]
    world.pass_time(1)
    for lease in leases:
        world.report(lease, gpu_us=1)
        world.check(lease)
    assert sum(world.now_lease(lease).charge_microusd for lease in leases) == 0
    assert world.state.runs[run.id].charge_carry == 3 * 333_333
    world.aggregate(run)
    again = world.lease_of(ADA)
    world.pass_time(1)
    world.report(again, gpu_us=1)
    world.check(again)
    assert world.now_lease(again).charge_microusd == 1


def test_the_shard_of_a_device_that_stays_away_is_leased_to_another():
    world, _ = started(ADA, shards_per_round=1)
    lease = world.lease_of(ADA)
    world.disconnect(ADA)
    world.connect(BO)
    world.pass_time(20)
    assert world.now_lease(lease).phase is LeasePhase.EXPIRED
    assert world.lease_of(BO).shard_id == lease.shard_id


def test_a_device_that_shuts_down_hands_back_and_its_shard_moves_at_once():
    world, _ = started(ADA, BO, shards_per_round=1)
    lease = world.lease_of(ADA)
    world.hand_back(ADA, "shutdown")
    assert world.lease_of(BO).shard_id == lease.shard_id


def test_a_restarted_device_gets_work_at_once():
    world, _ = started(ADA)
    world.hand_back(ADA, "shutdown")
    assert not world.has_lease(ADA)
    world.disconnect(ADA)
    world.connect(ADA, session_id="new")
    assert world.has_lease(ADA)


def test_a_device_that_comes_back_late_goes_on_if_nobody_else_has_its_shard():
    world, _ = started(ADA, shards_per_round=1)
    lease = world.lease_of(ADA)
    world.disconnect(ADA)
    world.pass_time(25)
    world.connect(ADA, session_id="new", resumed=(lease.id,))
    assert world.now_lease(lease).phase is LeasePhase.RUNNING
    assert world.state.shards[lease.shard_id].phase is ShardPhase.LEASED


def test_a_device_that_comes_back_to_a_lost_lease_is_told_to_stop():
    world, _ = started(ADA, shards_per_round=1)
    lease = world.lease_of(ADA)
    world.disconnect(ADA)
    world.connect(BO)
    world.pass_time(25)
    world.connect(ADA, session_id="new", resumed=(lease.id,))
    assert world.revoked() == [(lease.id, "lost")]


def test_a_restarted_device_that_forgot_its_lease_gets_it_again_at_once():
    world, _ = started(ADA)
    lease = world.lease_of(ADA)
    world.send(ev.LeaseProgress(ADA, lease.id, 1))
    world.disconnect(ADA)
    world.connect(ADA, session_id="new")
    assert world.sent(ins.SendLease) == [ins.SendLease("new", lease.id)]


def test_a_second_log_in_takes_over_cleanly():
    world, _ = started(ADA)
    lease = world.lease_of(ADA)
    world.connect(ADA, session_id="newer", resumed=(lease.id,))
    assert world.sent(ins.CloseSession) == [ins.CloseSession(f"socket of {ADA}", "superseded")]
    world.disconnect(ADA)  # news of the older socket
    world.pass_time(25)
    assert world.now_lease(lease).phase is LeasePhase.RUNNING
    assert world.state.session(ADA) == "newer"


def test_a_device_cannot_resume_the_lease_of_another():
    world, _ = started(ADA, BO)
    lease = world.lease_of(BO)
    world.send(connected(ADA, session_id="new", resumed=(lease.id,)))
    assert (lease.id, "unknown") in world.revoked()
    assert world.now_lease(lease).device_id == BO


def test_a_device_that_is_ready_but_should_be_working_gets_its_lease_again():
    world, _ = started(ADA)
    lease = world.lease_of(ADA)
    world.send(ev.LeaseProgress(ADA, lease.id, 0))
    world.now += timedelta(seconds=6)
    world.send(ev.DeviceReady(ADA, f"socket of {ADA}"))
    assert world.sent(ins.SendLease) == [ins.SendLease(f"socket of {ADA}", lease.id)]


def test_a_check_that_never_answers_blames_nobody():
    world, _ = started(ADA, shards_per_round=1)
    lease = world.lease_of(ADA)
    world.report(lease)
    asked = 0
    while world.now_lease(lease).phase is LeasePhase.REPORTED:
        world.pass_time(31)
        asked += len(world.sent(ins.CheckResult))
    assert asked == 4
    assert world.refusals() == ["check_failed"]
    assert world.state.standing(ADA).failures_in_a_row == 0


def test_an_empty_wish_for_an_unknown_lease_changes_nothing():
    world, _ = started(ADA)
    before = dict(world.state.leases)
    unknown = world.new_id()
    world.send(
        ev.LeaseProgress(ADA, unknown, 1),
        ev.LeaseHandedBack(ADA, unknown, "error"),
        ev.ResultChecked(unknown, None, 1.0),
    )
    assert world.state.leases == before
    assert world.revoked() == [(unknown, "unknown")]
