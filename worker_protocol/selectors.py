"""What the fleet manager reads of a device when it calls in."""

from dataclasses import dataclass
from uuid import UUID

from accounts.models import Device


@dataclass(frozen=True, slots=True)
class Credentials:
    """By what a device is known, and whether its owner still has it."""

    public_key: bytes
    removed: bool


def device_credentials(device_id: UUID) -> Credentials | None:
    device = Device.objects.filter(id=device_id).only("public_key", "state").first()
    if device is None:
        return None
    return Credentials(public_key=bytes(device.public_key), removed=device.state == Device.State.REMOVED)
