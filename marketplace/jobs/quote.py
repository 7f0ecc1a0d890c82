"""What a job will cost, before it runs: pure arithmetic over the program's static cost and the frozen rates.

A shard's time on a device class follows from its FLOPs, bytes and kernel launches. `low` and `high` are the price
if the cheapest or the dearest class did all of it at its reference speed. `cap` is what can never be exceeded: every
shard on the dearest class, on its slowest device, metered at the bound of the meter.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from accounts.domain.device_classes import DEVICE_CLASSES, SPEED_FACTOR_BOUNDS
from common.money import format_usd, meter_cap_us, price_ceiling_microusd, price_microusd
from marketplace.errors import BudgetTooSmall

REFERENCE_SPEED = 1.0


@dataclass(frozen=True, slots=True)
class StepCost:
    """Static cost of one training step."""

    flops: float
    moved_bytes: float
    dispatches: int


@dataclass(frozen=True, slots=True)
class ClassPrice:
    """One shard on a device of one class."""

    device_class: str
    rate_microusd_per_gpu_second: int
    shard_gpu_us: int
    shard_microusd: int
    usual_cap_microusd: int  # the most it bills on a device of reference speed
    shard_cap_microusd: int  # the most it bills on the slowest device

    def microusd_for(self, shards: int) -> int:
        """What so many shards should cost, rounded down once."""
        return price_microusd(
            gpu_us=shards * self.shard_gpu_us, rate_microusd_per_gpu_second=self.rate_microusd_per_gpu_second
        )


@dataclass(frozen=True, slots=True)
class Quote:
    rounds: int
    shards: int
    by_class: tuple[ClassPrice, ...]
    low_microusd: int
    high_microusd: int
    cap_microusd: int
    hold_microusd: int

    def basis_json(self) -> list[dict[str, Any]]:
        return [asdict(price) for price in self.by_class]


def quote_make(
    *,
    cost: StepCost,
    local_steps: int,
    rounds: int,
    shards_per_round: int,
    rates: Mapping[str, int],
    budget_microusd: int,
) -> Quote:
    """Raises BudgetTooSmall if the budget would not pay for one shard on any class of device."""
    prices = tuple(
        _price(device_class, rate, cost, local_steps) for device_class, rate in sorted(rates.items())
    )
    least_microusd = min(price.usual_cap_microusd for price in prices)
    if budget_microusd < least_microusd:
        raise BudgetTooSmall(
            f"budget_microusd: {format_usd(budget_microusd)} does not pay for one piece of work, which "
            f"may cost {format_usd(least_microusd)}. Set a higher budget, or fewer local steps.",
            field="budget_microusd",
        )
    shards = rounds * shards_per_round
    cap_microusd = shards * max(price.shard_cap_microusd for price in prices)
    return Quote(
        rounds=rounds,
        shards=shards,
        by_class=prices,
        low_microusd=min(price.microusd_for(shards) for price in prices),
        high_microusd=max(price.microusd_for(shards) for price in prices),
        cap_microusd=cap_microusd,
        hold_microusd=min(cap_microusd, budget_microusd),
    )


def _price(device_class: str, rate: int, cost: StepCost, local_steps: int) -> ClassPrice:
    def shard_gpu_us(speed_factor: float) -> int:
        return DEVICE_CLASSES[device_class].expected_gpu_us(
            flops=cost.flops * local_steps,
            moved_bytes=cost.moved_bytes * local_steps,
            dispatches=cost.dispatches * local_steps,
            speed_factor=speed_factor,
        )

    def price(gpu_us: int) -> int:
        return price_microusd(gpu_us=gpu_us, rate_microusd_per_gpu_second=rate)

    def ceiling(gpu_us: int) -> int:
        return price_ceiling_microusd(gpu_us=gpu_us, rate_microusd_per_gpu_second=rate)

    usual_us, slowest_us = shard_gpu_us(REFERENCE_SPEED), shard_gpu_us(SPEED_FACTOR_BOUNDS[0])
    return ClassPrice(
        device_class=device_class,
        rate_microusd_per_gpu_second=rate,
        shard_gpu_us=usual_us,
        shard_microusd=price(usual_us),
        usual_cap_microusd=ceiling(meter_cap_us(usual_us)),
        shard_cap_microusd=ceiling(meter_cap_us(slowest_us)),
    )
