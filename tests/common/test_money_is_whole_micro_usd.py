"""Amounts in micro-USD: parsed, shown and metered without ever losing or making a fraction."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.money import (
    charge_with_carry,
    fee_microusd,
    format_usd,
    metered_gpu_us,
    parse_usd,
    price_ceiling_microusd,
    price_microusd,
)

micros = st.integers(min_value=0, max_value=10**15)


@given(amount=st.integers(min_value=-(10**15), max_value=10**15))
def test_what_is_shown_reads_back_as_the_same_amount(amount):
    assert parse_usd(format_usd(amount).replace("$", "").replace(",", "")) == amount


@pytest.mark.parametrize(
    "text", ["", "abc", "NaN", "Infinity", "1e-9", "0.0000001", "--1", "1e999999999", "-1e999999"]
)
def test_an_amount_that_is_no_whole_number_of_micro_usd_is_refused(text):
    with pytest.raises(ValueError, match=r"USD|amount"):
        parse_usd(text)


@given(reported=micros, turnaround=micros, expected=micros)
def test_the_meter_takes_the_least_of_its_three_bounds(reported, turnaround, expected):
    metered = metered_gpu_us(reported_us=reported, turnaround_us=turnaround, expected_us=expected)
    assert metered <= reported
    assert metered <= turnaround
    assert 2 * metered <= 3 * expected
    assert metered in (reported, turnaround, 3 * expected // 2)


def test_a_device_whose_clock_ran_backwards_bills_nothing():
    assert metered_gpu_us(reported_us=-5, turnaround_us=10, expected_us=10) == 0


@given(gpu_us=st.integers(0, 10**12), rate=st.integers(0, 10**6), fee=st.integers(0, 10_000))
def test_price_and_fee_never_round_against_the_payer(gpu_us, rate, fee):
    price = price_microusd(gpu_us=gpu_us, rate_microusd_per_gpu_second=rate)
    assert price * 1_000_000 <= gpu_us * rate < (price + 1) * 1_000_000
    assert 0 <= fee_microusd(amount_microusd=price, fee_basis_points=fee) <= price


@given(
    results=st.lists(st.integers(0, 10**9), max_size=40),
    rate=st.integers(0, 10**6),
)
def test_many_small_results_together_cost_what_they_are_worth_rounded_down_once(results, rate):
    charged = carry = 0
    for gpu_us in results:
        charge, carry = charge_with_carry(gpu_us=gpu_us, rate_microusd_per_gpu_second=rate, carry=carry)
        assert charge <= price_ceiling_microusd(gpu_us=gpu_us, rate_microusd_per_gpu_second=rate)
        charged += charge
    assert charged == price_microusd(gpu_us=sum(results), rate_microusd_per_gpu_second=rate)


def test_small_amounts_keep_their_digits_and_large_ones_their_commas():
    assert format_usd(1_234) == "$0.001234"
    assert format_usd(1_234_500_000) == "$1,234.50"
    assert format_usd(-20_000) == "-$0.02"
