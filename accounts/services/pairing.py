"""How a device joins: its owner shows it a short code, it answers with the code and its public key."""

import math
import re
import secrets
from datetime import datetime, timedelta

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from django.db import IntegrityError, transaction
from django.utils.crypto import salted_hmac

from accounts.attempts import AttemptLimit
from accounts.domain.device_classes import DEVICE_CLASSES
from accounts.domain.windows import NIGHTLY
from accounts.errors import (
    DeviceAlreadyPaired,
    InvalidDeviceFacts,
    InvalidPublicKey,
    LimitError,
    PairingCodeExpired,
    PairingCodeUsed,
    PairingCodeWrong,
    TooManyPairingAttempts,
)
from accounts.models import Device, IdleWindow, PairingCode, User
from accounts.services.checks import checked_name
from accounts.services.news import publish_device_news
from common.clock import utc_now

CODE_ALPHABET = "ABCDEFGHJKMNPQRSTUVWXYZ23456789"  # nothing that reads like something else: no I, L, O, 0, 1
CODE_LENGTH = 8
CODE_LIFETIME = timedelta(minutes=10)
MAX_LIVE_CODES = 20
MAX_DEVICES = 200
# A guesser would need 8 x 10^11 tries for one code; this many from one address is plenty for typing errors.
WRONG_CODES = AttemptLimit("pairing", attempts=10, per=timedelta(minutes=10))


@transaction.atomic
def pairing_code_create(*, owner: User, now: datetime | None = None) -> tuple[PairingCode, str]:
    """Make a one-time code that lives ten minutes; the second value is the code as people read it."""
    now = now or utc_now()
    unused = PairingCode.objects.filter(owner=owner, used_at=None)
    unused.filter(expires_at__lt=now - CODE_LIFETIME).delete()
    if unused.filter(expires_at__gt=now).count() >= MAX_LIVE_CODES:
        raise LimitError(
            f"You have {MAX_LIVE_CODES} unused pairing codes; use one, or wait until they expire."
        )
    letters = "".join(secrets.choice(CODE_ALPHABET) for _ in range(CODE_LENGTH))
    code = PairingCode.objects.create(owner=owner, digest=_digest(letters), expires_at=now + CODE_LIFETIME)
    return code, f"{letters[:4]}-{letters[4:]}"


def device_pair(
    *,
    code: str,
    public_key: bytes,
    name: str,
    kind: str,
    device_class: str,
    speed_factor: float = 1.0,
    client_address: str | None = None,
    now: datetime | None = None,
) -> Device:
    """Spend a code on a new device of the code's owner. Whatever is refused, the code stays as it was.

    Wrong codes are counted by `client_address`. Raises a PairingError or an InputError.
    """
    now = now or utc_now()
    name = checked_name(name)
    _check_public_key(public_key)
    _check_facts(kind, device_class, speed_factor)
    if client_address is not None and not WRONG_CODES.take(client_address):
        raise TooManyPairingAttempts(
            f"Too many wrong pairing codes from this address; wait {WRONG_CODES.minutes} minutes.",
            field="code",
        )
    with transaction.atomic():
        claimed = _claim_code(code, now)
        # One new device of an owner at a time, so that the bound holds and the nightly windows are made once.
        owner = User.objects.select_for_update().get(id=claimed.owner_id)
        device = _create_device(
            owner=owner,
            name=name,
            kind=kind,
            device_class=device_class,
            public_key=public_key,
            speed_factor=speed_factor,
        )
        PairingCode.objects.filter(id=claimed.id).update(device=device)
        publish_device_news("changed", [device.id])
    if client_address is not None:
        WRONG_CODES.give_back(client_address)
    return device


def _claim_code(code: str, now: datetime) -> PairingCode:
    """Use the code up; of several that try at once, one succeeds."""
    codes = PairingCode.objects.filter(digest=_digest(_letters(code)))
    claimed = codes.filter(used_at=None, expires_at__gt=now).update(used_at=now)
    found = codes.first()
    if found is None:
        raise PairingCodeWrong(
            "This pairing code is not right; compare it with the one on the site.", field="code"
        )
    if not claimed and found.used_at is not None:
        raise PairingCodeUsed("This pairing code has been used; make a new one on the site.", field="code")
    if not claimed:
        raise PairingCodeExpired("This pairing code has expired; make a new one on the site.", field="code")
    return found


def _create_device(*, owner: User, public_key: bytes, **facts: object) -> Device:
    if owner.devices.exclude(state=Device.State.REMOVED).count() >= MAX_DEVICES:
        raise LimitError(f"The owner has {MAX_DEVICES} devices; remove one first.")
    try:
        with transaction.atomic():
            device = Device.objects.create(owner=owner, public_key=public_key, **facts)
    except IntegrityError:
        raise DeviceAlreadyPaired(
            "This device is or was paired with its present key; start it with a fresh key to pair it anew.",
            field="public_key",
        ) from None
    if not owner.idle_windows.exists():
        IdleWindow.objects.bulk_create(
            IdleWindow(owner=owner, weekday=w.weekday, starts=w.starts, ends=w.ends) for w in NIGHTLY
        )
    return device


def _check_public_key(public_key: bytes) -> None:
    try:
        Ed25519PublicKey.from_public_bytes(public_key)
    except ValueError:
        raise InvalidPublicKey(
            "The public key must be the 32 bytes of an Ed25519 key.", field="public_key"
        ) from None


def _check_facts(kind: str, device_class: str, speed_factor: float) -> None:
    if kind not in Device.Kind.values:
        raise InvalidDeviceFacts(f"The kind must be one of {', '.join(Device.Kind.values)}.", field="kind")
    if device_class not in DEVICE_CLASSES:
        raise InvalidDeviceFacts(
            f"The class must be one of {', '.join(DEVICE_CLASSES)}.", field="device_class"
        )
    if not (math.isfinite(speed_factor) and speed_factor > 0):
        raise InvalidDeviceFacts("The speed factor must be a positive number.", field="speed_factor")


def _letters(code: str) -> str:
    """The code as it is stored, however it was typed: 'abcd efgh' is 'ABCD-EFGH'."""
    return re.sub(r"[\s-]", "", code).upper()


def _digest(letters: str) -> str:
    """Keyed, because a code is short enough to be found by trying if only the database leaked."""
    return salted_hmac("accounts.pairing", letters, algorithm="sha256").hexdigest()
