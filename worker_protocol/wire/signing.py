"""How a device proves who it is: an Ed25519 signature (RFC 8032) over the server's nonce and its own id."""

from uuid import UUID

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

# Names the protocol and the purpose, so that a signature made here means nothing anywhere else.
DOMAIN = b"nightshift.v1 auth\n"


def signing_bytes(*, nonce: str, device_id: str) -> bytes:
    """What a device signs: the domain, the 32 bytes of the nonce, the 16 bytes of its id."""
    return DOMAIN + bytes.fromhex(nonce) + UUID(device_id).bytes


def sign(key: Ed25519PrivateKey, *, nonce: str, device_id: str) -> str:
    """The signature as 128 hex digits."""
    return key.sign(signing_bytes(nonce=nonce, device_id=device_id)).hex()


def signature_is_valid(*, public_key: bytes, signature: str, nonce: str, device_id: str) -> bool:
    """Whether `signature` (hex) is the one of `public_key` (32 bytes) for this nonce and device."""
    try:
        Ed25519PublicKey.from_public_bytes(public_key).verify(
            bytes.fromhex(signature), signing_bytes(nonce=nonce, device_id=device_id)
        )
    except (InvalidSignature, ValueError):
        return False
    return True
