"""What a device of each class can do: the reference figures behind quotes, deadlines and the meter.

A device's own speed is its class's figure times a measured `speed_factor`, kept within `SPEED_FACTOR_BOUNDS`, so
that a quote made from the class bounds what any device of it can bill. The figures are sustained float32 speeds of
training kernels, well under a data sheet's peak: `python -m worker_protocol.agent --benchmark` prints a device's own.
"""

from dataclasses import dataclass

from common.money import US_PER_SECOND

# A device outside these multiples of its class's speed is treated as at the bound.
SPEED_FACTOR_BOUNDS = (0.25, 4.0)


@dataclass(frozen=True, slots=True)
class DeviceClass:
    key: str
    label: str
    flops_per_second: float
    bytes_per_second: float
    dispatch_us: float  # overhead of one kernel launch

    def expected_gpu_us(
        self, *, flops: float, moved_bytes: float, dispatches: int, speed_factor: float
    ) -> int:
        """GPU microseconds that work of this static cost should take: a roofline plus launch overhead."""
        roofline_s = max(flops / self.flops_per_second, moved_bytes / self.bytes_per_second)
        launch_s = dispatches * self.dispatch_us / US_PER_SECOND
        return max(1, round((roofline_s + launch_s) * US_PER_SECOND / clamp_speed(speed_factor)))


DEVICE_CLASSES: dict[str, DeviceClass] = {
    c.key: c
    for c in (
        DeviceClass("laptop-cpu", "Laptop, processor only", 60e9, 5e9, 9.0),
        DeviceClass("laptop-gpu", "Laptop with a GPU", 1_000e9, 80e9, 10.0),
        DeviceClass("phone-entry", "Phone, entry class", 100e9, 15e9, 30.0),
        DeviceClass("phone-high", "Phone, top class", 500e9, 40e9, 20.0),
    )
}
DEFAULT_DEVICE_CLASS = "laptop-cpu"


def clamp_speed(speed_factor: float) -> float:
    low, high = SPEED_FACTOR_BOUNDS
    return min(max(speed_factor, low), high)
