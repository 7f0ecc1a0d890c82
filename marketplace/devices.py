"""An owner's devices as the owner sees them: what each does now, and what it has earned of late."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from accounts.domain.policy import Readings, block_words, decide
from accounts.domain.profile import DeviceProfile
from accounts.domain.windows import window_words
from accounts.models import Device, User
from accounts.selectors import device_profiles, devices_of
from billing.selectors import earnings_by_charge_keys
from common.clock import utc_now
from common.money import US_PER_SECOND
from marketplace.jobs.settling import charge_key
from scheduler.models import Lease
from scheduler.selectors import device_activity

LATELY = timedelta(hours=24)


@dataclass(frozen=True, slots=True)
class DeviceView:
    """Figures are of the last 24 hours. `earned_microusd` is the owner's part, as far as it is posted."""

    device: Device
    profile: DeviceProfile
    state_words: str
    window_words: str
    accepted: int
    failed: int
    gpu_seconds: float
    earned_microusd: int


def owner_devices_view(owner: User, *, now: datetime | None = None) -> list[DeviceView]:
    moment = now or utc_now()
    since = moment - LATELY
    devices = list(devices_of(owner))
    profiles = device_profiles(device.id for device in devices)
    earned = _earned(owner, [device.id for device in devices], since)
    return [_view(device, profiles[device.id], earned.get(device.id, 0), since, moment) for device in devices]


def _view(
    device: Device, profile: DeviceProfile, earned_microusd: int, since: datetime, now: datetime
) -> DeviceView:
    activity = device_activity(device.id, since)
    return DeviceView(
        device=device,
        profile=profile,
        state_words=_state_words(profile, activity.lease, now),
        window_words=window_words(profile.windows, profile.time_zone, now),
        accepted=activity.accepted,
        failed=activity.failed,
        gpu_seconds=activity.metered_gpu_us / US_PER_SECOND,
        earned_microusd=earned_microusd,
    )


def _state_words(profile: DeviceProfile, lease: Lease | None, now: datetime) -> str:
    if lease is not None:
        return f"training, step {lease.step} of {lease.shard.round.run.local_steps}"
    # What its sensors say is known to its socket alone; pause and windows are known here.
    reason = decide(profile=profile, readings=Readings(), now=now, blocked_before=None)
    return block_words(reason, profile=profile, now=now) if reason else "ready for work"


def _earned(owner: User, device_ids: list[UUID], since: datetime) -> Mapping[UUID, int]:
    """What each device's accepted results of late have brought the owner, in micro-USD."""
    accepted = Lease.objects.filter(
        device_id__in=device_ids, owner_id=owner.pk, state=Lease.State.ACCEPTED, ended_at__gte=since
    )
    device_by_key = {
        charge_key(lease_id): device_id for lease_id, device_id in accepted.values_list("id", "device_id")
    }
    earned: dict[UUID, int] = {}
    for key, amount_microusd in earnings_by_charge_keys(owner_id=owner.pk, keys=device_by_key).items():
        earned[device_by_key[key]] = earned.get(device_by_key[key], 0) + amount_microusd
    return earned
