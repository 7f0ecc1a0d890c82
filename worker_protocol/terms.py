"""What a device is told of its owner's rules, windows and earnings: the numbers in force. Pure."""

from datetime import datetime

from accounts.domain.policy import resume_battery_percent
from accounts.domain.profile import DeviceProfile
from accounts.domain.windows import next_noon, next_times
from billing.domain.rates import Tariff
from common.money import fee_microusd
from worker_protocol.wire import messages as msg

S_PER_HOUR = 3_600


def terms_message(
    *, profile: DeviceProfile, earned_microusd: int, tariff: Tariff, now: datetime
) -> msg.Terms:
    """`earned_microusd` is what the device's results brought its owner since the last local noon."""
    opens_at, closes_at = next_times(profile.windows, profile.time_zone, now)
    policy = profile.policy
    hour_microusd = tariff.rates[profile.device_class] * S_PER_HOUR
    return msg.Terms(
        opens_ms=_unix_ms(opens_at),
        closes_ms=_unix_ms(closes_at),
        battery_floor_percent=policy.battery_floor_percent,
        battery_resume_percent=resume_battery_percent(policy),
        charging_only=policy.charging_only,
        wifi_only=policy.wifi_only,
        too_hot_celsius=policy.too_hot_celsius,
        microusd_per_gpu_hour=hour_microusd
        - fee_microusd(amount_microusd=hour_microusd, fee_basis_points=tariff.fee_basis_points),
        earned_microusd=earned_microusd,
    )


def terms_change_at(*, profile: DeviceProfile, now: datetime) -> datetime:
    """When time alone next changes a device's terms: a window opens or closes, or a new night begins at noon."""
    changes = next_times(profile.windows, profile.time_zone, now)
    return min(at for at in (*changes, next_noon(profile.time_zone, now)) if at is not None)


def _unix_ms(at: datetime | None) -> int | None:
    return None if at is None else int(at.timestamp() * 1000)
