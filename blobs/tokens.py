"""Tokens in addresses: signed, for one purpose each, and only for a while.

A read token names the exact blob and its reader; an upload token names the subject that uploads and how much it may
send. Each purpose has a salt of its own, so that a token for one is worth nothing for the other. Tokens are never
logged.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

from django.core import signing

from blobs.errors import BlobTokenExpired, BlobTokenInvalid

READ_SALT = "nightshift.blobs.read"
UPLOAD_SALT = "nightshift.blobs.upload"


@dataclass(frozen=True, slots=True)
class ReadGrant:
    sha256: str
    reader: str


@dataclass(frozen=True, slots=True)
class UploadGrant:
    subject: str
    max_bytes: int


def read_token(grant: ReadGrant, *, expires_at: datetime) -> str:
    return _sign([grant.sha256, grant.reader], salt=READ_SALT, expires_at=expires_at)


def read_grant(token: str, *, now: datetime) -> ReadGrant:
    """What a read token grants. Raises BlobTokenInvalid, BlobTokenExpired."""
    return ReadGrant(*_verify(token, salt=READ_SALT, now=now))


def upload_token(grant: UploadGrant, *, expires_at: datetime) -> str:
    return _sign([grant.subject, grant.max_bytes], salt=UPLOAD_SALT, expires_at=expires_at)


def upload_grant(token: str, *, now: datetime) -> UploadGrant:
    """What an upload token grants. Raises BlobTokenInvalid, BlobTokenExpired."""
    return UploadGrant(*_verify(token, salt=UPLOAD_SALT, now=now))


def _sign(content: list[Any], *, salt: str, expires_at: datetime) -> str:
    return signing.dumps([int(expires_at.timestamp()), *content], salt=salt)


def _verify(token: str, *, salt: str, now: datetime) -> list[Any]:
    try:
        expires_at_s, *content = cast(list[Any], signing.loads(token, salt=salt))
    except signing.BadSignature:
        raise BlobTokenInvalid from None
    if now.timestamp() >= expires_at_s:
        raise BlobTokenExpired
    return content
