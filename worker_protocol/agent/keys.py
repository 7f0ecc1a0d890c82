"""Who this device is: its Ed25519 key and its pairing, in a state folder that only its user can read."""

import os
import stat
from dataclasses import dataclass
from pathlib import Path

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from worker_protocol.agent.errors import BadState, UnsafeKeyFile

KEY_FILE = "device.key"
PAIRING_FILE = "pairing.json"


class Pairing(msgspec.Struct, frozen=True):
    """With which site this device is paired, and as what."""

    server: str
    device_id: str


@dataclass(frozen=True, slots=True)
class Identity:
    """A paired device's pairing and key."""

    pairing: Pairing
    key: Ed25519PrivateKey


def key_open(state: Path) -> Ed25519PrivateKey:
    """The folder's key, made on first use. Raises UnsafeKeyFile when others could have read it."""
    path = state / KEY_FILE
    try:
        state.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not path.exists():
            _write_private(path, Ed25519PrivateKey.generate().private_bytes_raw().hex().encode())
        _refuse_if_shared(path)
        return Ed25519PrivateKey.from_private_bytes(bytes.fromhex(path.read_text()))
    except OSError as error:
        raise BadState(
            f"Cannot use the folder {state} ({error.strerror}); give another with --state."
        ) from error
    except ValueError:
        raise BadState(f"{path} does not hold a key; remove {state} and pair this device again.") from None


def pairing_load(state: Path) -> Pairing | None:
    path = state / PAIRING_FILE
    try:
        return msgspec.json.decode(path.read_bytes(), type=Pairing)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.MsgspecError):
        raise BadState(f"{path} cannot be read; remove {state} and pair this device again.") from None


def pairing_save(state: Path, pairing: Pairing) -> None:
    _write_private(state / PAIRING_FILE, msgspec.json.encode(pairing))


def _write_private(path: Path, data: bytes) -> None:
    """Write a whole file that was never readable by others, not even for a moment."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(data)


def _refuse_if_shared(path: Path) -> None:
    if os.name == "posix" and path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise UnsafeKeyFile(
            f"Others on this machine can read {path}. If nobody has, run: chmod 600 {path}. "
            f"Otherwise remove {path.parent} and pair this device again."
        )
