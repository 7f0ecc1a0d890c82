"""Every class of device has a rate."""

from accounts.domain.device_classes import DEVICE_CLASSES
from billing.domain.rates import RATES


def test_every_class_of_device_has_a_rate_of_whole_micro_usd():
    assert set(RATES) == set(DEVICE_CLASSES)
    assert all(isinstance(rate, int) and rate > 0 for rate in RATES.values())


def test_a_quicker_class_earns_more_by_the_second_and_is_cheaper_for_the_same_work():
    by_speed = sorted(DEVICE_CLASSES.values(), key=lambda c: c.flops_per_second)
    rates = [RATES[c.key] for c in by_speed]
    prices_of_work = [RATES[c.key] / c.flops_per_second for c in by_speed]
    assert rates == sorted(rates)
    assert prices_of_work == sorted(prices_of_work, reverse=True)
