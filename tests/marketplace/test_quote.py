"""Quotes: never exceeded, honest about what they rest on."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accounts.domain.device_classes import DEVICE_CLASSES
from common.money import charge_with_carry, metered_gpu_us
from marketplace.errors import BudgetTooSmall
from marketplace.jobs.quote import Quote, StepCost, quote_make

RATES = {"laptop-cpu": 100, "phone-entry": 150, "phone-high": 400}
COST = StepCost(flops=5e9, moved_bytes=2e8, dispatches=300)


def quoted(**changes: Any) -> Quote:
    inputs: dict[str, Any] = {
        "cost": COST,
        "local_steps": 20,
        "rounds": 10,
        "shards_per_round": 3,
        "rates": RATES,
        "budget_microusd": 10**9,
    }
    return quote_make(**{**inputs, **changes})


@given(
    flops=st.floats(1, 1e13),
    moved_bytes=st.floats(1, 1e11),
    dispatches=st.integers(1, 5000),
    local_steps=st.integers(1, 100),
    work=st.lists(
        st.tuples(
            st.sampled_from(sorted(RATES)),
            st.floats(0.001, 1000),
            st.integers(0, 10**13),
            st.integers(0, 10**13),
        ),
        min_size=6,
        max_size=6,
    ),
)
def test_no_devices_whatever_they_report_can_bill_more_than_the_cap(
    flops, moved_bytes, dispatches, local_steps, work
):
    cost = StepCost(flops, moved_bytes, dispatches)
    quote = quoted(cost=cost, local_steps=local_steps, rounds=2, budget_microusd=10**15)
    billed = carry = 0
    for device_class, speed_factor, reported_us, turnaround_us in work:
        expected_us = DEVICE_CLASSES[device_class].expected_gpu_us(
            flops=flops * local_steps,
            moved_bytes=moved_bytes * local_steps,
            dispatches=dispatches * local_steps,
            speed_factor=speed_factor,
        )
        gpu_us = metered_gpu_us(reported_us=reported_us, turnaround_us=turnaround_us, expected_us=expected_us)
        charge, carry = charge_with_carry(
            gpu_us=gpu_us, rate_microusd_per_gpu_second=RATES[device_class], carry=carry
        )
        billed += charge
    assert billed <= quote.cap_microusd


def test_low_high_and_cap_are_in_order_and_the_hold_is_the_cap():
    quote = quoted()
    assert 0 < quote.low_microusd < quote.high_microusd < quote.cap_microusd
    assert quote.hold_microusd == quote.cap_microusd
    assert quote.shards == 30


def test_a_budget_under_the_cap_is_all_that_is_held():
    cap = quoted().cap_microusd
    assert quoted(budget_microusd=cap - 1).hold_microusd == cap - 1


def test_the_basis_names_each_class_with_its_rate_and_time():
    basis = {entry["device_class"]: entry for entry in quoted().basis_json()}
    assert set(basis) == set(RATES)
    laptop = basis["laptop-cpu"]
    assert laptop["shard_gpu_us"] == round((5e9 * 20 / 60e9 + 300 * 20 * 9e-6) * 1e6)
    assert laptop["shard_microusd"] == laptop["shard_gpu_us"] * 100 // 1_000_000


def test_a_budget_that_pays_for_no_shard_is_refused_with_the_least_that_does():
    least = min(price.usual_cap_microusd for price in quoted().by_class)
    with pytest.raises(BudgetTooSmall) as caught:
        quoted(budget_microusd=least - 1)
    assert caught.value.field == "budget_microusd"
    assert quoted(budget_microusd=least).hold_microusd == least


def test_work_too_small_to_price_still_makes_a_hold():
    quote = quoted(cost=StepCost(1, 1, 1), local_steps=1, budget_microusd=1)
    assert (quote.low_microusd, quote.hold_microusd) == (0, 1)
    assert quote.cap_microusd == quote.shards  # each may be the one that a whole micro-USD falls on
