"""A run never spends more than its budget, and ends with what it has learnt when the budget is used up."""

import pytest

from scheduler.domain.budget import max_charge_microusd
from scheduler.domain.transitions import RoundPhase

from .world import ADA, BO, CY, World, connected, spec, started

SHARD_AT_MOST = 15_000  # micro-USD: 1.5 x 1 s at a cent a second


def test_the_most_a_shard_can_cost_is_reserved_while_its_lease_lives():
    world, run = started()
    assert max_charge_microusd(run, "laptop-cpu", 1.0) == SHARD_AT_MOST
    assert world.state.budget_left(world.state.runs[run.id]) == 1_000_000 - 3 * SHARD_AT_MOST


def test_no_lease_is_granted_that_the_budget_could_not_pay():
    world, _ = started(budget_microusd=2 * SHARD_AT_MOST)
    assert sum(world.has_lease(device) for device in (ADA, BO, CY)) == 2


def test_what_a_result_did_not_cost_is_free_for_the_next():
    world, _ = started(ADA, budget_microusd=2 * SHARD_AT_MOST - 1)
    world.pass_time(1)
    world.finish(ADA)  # costs 10 000 of the 15 000 reserved
    assert world.has_lease(ADA)


def test_a_partial_round_is_aggregated_before_the_budget_ends_the_run():
    world, run = started(ADA, budget_microusd=SHARD_AT_MOST)
    world.pass_time(2)
    world.finish(ADA)
    assert world.round_of(run).phase is RoundPhase.AGGREGATING
    world.aggregate(run)
    ended = world.outcome.changed.runs[run.id]
    assert (ended.phase, ended.ended_because) == ("finished", "budget")
    assert ended.params_sha256 != run.initial_params_sha256


def test_a_budget_too_small_for_every_device_ends_the_run_at_once():
    world = World()
    run = world.add_run(budget_microusd=1)
    assert world.outcome.changed.runs[run.id].ended_because == "budget"


def test_a_budget_too_small_for_one_device_waits_for_none_that_is_cheap_enough():
    world = World()
    world.connect(ADA, speed_factor=0.5)  # twice as slow, twice as dear
    run = world.add_run(budget_microusd=SHARD_AT_MOST)
    assert world.outcome.changed.runs[run.id].ended_because == "budget"


def test_a_cheaper_device_gets_what_a_dearer_one_cannot():
    world = World()
    world.send(connected(ADA, speed_factor=0.5), connected(BO))
    world.add_run(budget_microusd=SHARD_AT_MOST)
    assert world.has_lease(BO)
    assert not world.has_lease(ADA)


@pytest.mark.parametrize(("factor", "bound"), [(0.001, 0.25), (1_000, 4.0)])
def test_no_claimed_speed_is_beyond_the_quote(factor, bound):
    assert max_charge_microusd(spec(), "laptop-cpu", factor) == max_charge_microusd(
        spec(), "laptop-cpu", bound
    )
