"""What work should take on a device and what it can cost at most; and when a run's money is used up."""

from datetime import timedelta

from accounts.domain.device_classes import DEVICE_CLASSES, SPEED_FACTOR_BOUNDS
from common.money import meter_cap_us, price_ceiling_microusd
from scheduler.domain.limits import LEASE_MIN, LEASE_SLACK, TRANSFER_BYTES_PER_SECOND
from scheduler.domain.spec import RunSpec
from scheduler.domain.state import DeviceState, RunState, State


def expected_gpu_us(spec: RunSpec, device_class: str, speed_factor: float) -> int:
    """GPU microseconds that one shard should take on a device of this class and speed."""
    return DEVICE_CLASSES[device_class].expected_gpu_us(
        flops=spec.step_flops * spec.local_steps,
        moved_bytes=spec.step_bytes * spec.local_steps,
        dispatches=spec.step_dispatches * spec.local_steps,
        speed_factor=speed_factor,
    )


def max_charge_microusd(spec: RunSpec, device_class: str, speed_factor: float) -> int:
    """The most that one shard can be billed on such a device; so much is reserved while its lease lives."""
    return price_ceiling_microusd(
        gpu_us=meter_cap_us(expected_gpu_us(spec, device_class, speed_factor)),
        rate_microusd_per_gpu_second=spec.rates[device_class],
    )


def lease_time(spec: RunSpec, *, expected_us: int, pace: float, slice_bytes: int) -> timedelta:
    """How long a lease lasts: generous, since a device that is gone is noticed by its socket and not by its lease."""
    moved_bytes = slice_bytes + spec.memory_bytes  # parameters and delta are no larger than the work's memory
    seconds = LEASE_SLACK * pace * expected_us / 1e6 + moved_bytes / TRANSFER_BYTES_PER_SECOND
    return max(LEASE_MIN, timedelta(seconds=seconds))


def is_priced(spec: RunSpec, device: DeviceState) -> bool:
    return device.device_class in spec.rates and device.device_class in DEVICE_CLASSES


def is_used_up(state: State, run: RunState) -> bool:
    """Whether no device could be given another shard of a run with no live lease.

    It is decided by the devices that are connected; while none is, by the cheapest that might come.
    """
    charges = [
        max_charge_microusd(run.spec, device.device_class, device.speed_factor)
        for device in state.devices.values()
        if is_priced(run.spec, device)
    ] or [
        max_charge_microusd(run.spec, device_class, SPEED_FACTOR_BOUNDS[1])
        for device_class in run.spec.rates
        if device_class in DEVICE_CLASSES
    ]
    return min(charges, default=0) > state.budget_left(run)
