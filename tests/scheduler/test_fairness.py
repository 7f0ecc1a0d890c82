"""Buyers share the fleet equally, however many jobs each has; nobody starves."""

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from scheduler.domain.fairness import Fairness, FairQueue

from .world import ADA, BO, World


def run_id(n: int) -> UUID:
    return UUID(int=n)


def served(fairness: Fairness, waiting: dict[UUID, int], turns: int, cost_us: int = 100) -> list[int]:
    order = []
    for _ in range(turns):
        chosen = fairness.first(waiting)
        fairness.serve(buyer_id=waiting[chosen], run_id=chosen, cost_us=cost_us)
        order.append(waiting[chosen])
    return order


def test_two_buyers_take_turns():
    assert served(Fairness(), {run_id(1): 1, run_id(2): 2}, 6) == [1, 2, 1, 2, 1, 2]


def test_many_jobs_of_one_buyer_share_as_one():
    waiting = {run_id(1): 1, run_id(2): 1, run_id(3): 1, run_id(4): 2}
    assert served(Fairness(), waiting, 100).count(2) == 50


def test_the_jobs_of_one_buyer_share_that_buyers_part():
    fairness = Fairness()
    waiting = {run_id(1): 1, run_id(2): 1}
    chosen = []
    for _ in range(10):
        chosen.append(fairness.first(waiting))
        fairness.serve(buyer_id=1, run_id=chosen[-1], cost_us=100)
    assert chosen.count(run_id(1)) == chosen.count(run_id(2)) == 5


def test_a_newcomer_is_not_owed_the_past():
    fairness = Fairness()
    served(fairness, {run_id(1): 1}, 100)
    assert served(fairness, {run_id(1): 1, run_id(2): 2}, 10).count(2) == 5


def test_equal_shares_are_of_gpu_time_not_of_leases():
    queue: FairQueue[int] = FairQueue()
    granted = {1: 0, 2: 0}
    for _ in range(400):
        buyer = queue.first({1, 2})
        cost = {1: 300, 2: 100}[buyer]
        queue.serve(buyer, cost)
        granted[buyer] += cost
    assert abs(granted[1] - granted[2]) <= 300


@given(
    costs=st.dictionaries(st.integers(1, 6), st.integers(1, 1_000), min_size=2),
    comings=st.lists(st.sets(st.integers(1, 6)), min_size=50, max_size=50),
)
def test_nobody_who_waits_starves(costs, comings):
    """Whoever waits is served before anyone else gets more than two of the largest leases ahead of them."""
    queue: FairQueue[int] = FairQueue()
    ahead: dict[int, dict[int, int]] = {}
    for present in comings:
        waiting = {buyer for buyer in present if buyer in costs} | (ahead.keys() & costs.keys())
        if not waiting:
            continue
        for buyer in waiting:
            ahead.setdefault(buyer, {})
        chosen = queue.first(waiting)
        queue.serve(chosen, costs[chosen])
        ahead.pop(chosen)
        for others in ahead.values():
            others[chosen] = others.get(chosen, 0) + costs[chosen]
            assert others[chosen] <= 2 * max(costs.values())


def test_placement_lets_buyers_take_turns_on_a_small_fleet():
    world = World()
    first = world.add_run(id=run_id(1), buyer_id=1, rounds_planned=9)
    second = world.add_run(id=run_id(2), buyer_id=2, rounds_planned=9)
    world.connect(ADA)
    given_to = []
    for _ in range(4):
        given_to.append(world.lease_of(ADA).run_id)
        world.finish(ADA)
    assert given_to == [first.id, second.id, first.id, second.id]


def test_idle_devices_help_the_only_buyer_who_waits():
    world = World()
    world.add_run(id=run_id(1), buyer_id=1)
    world.connect(ADA, BO)
    assert world.has_lease(ADA)
    assert world.has_lease(BO)
