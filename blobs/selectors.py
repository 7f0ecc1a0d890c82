"""Reads of the blob store. An unknown hash, or something that is no hash, is BlobNotFound."""

from pathlib import Path
from typing import BinaryIO

from blobs.errors import BlobNotFound, BlobTooBig
from blobs.models import Blob, BlobHold, Upload
from blobs.store import blob_file


def blob_path(sha256: str) -> Path:
    """The blob's file. Read it at once: it may be collected as soon as nobody holds it."""
    path = blob_file(sha256)
    if not path.is_file():
        raise BlobNotFound
    return path


def blob_open(sha256: str) -> BinaryIO:
    try:
        return blob_file(sha256).open("rb")
    except FileNotFoundError:
        raise BlobNotFound from None


def blob_bytes(sha256: str, *, max_bytes: int) -> bytes:
    """The whole blob, if it is not over `max_bytes`. Raises BlobTooBig before anything is read."""
    with blob_open(sha256) as file:
        size_bytes = file.seek(0, 2)
        if size_bytes > max_bytes:
            raise BlobTooBig(size_bytes=size_bytes, max_bytes=max_bytes)
        file.seek(0)
        return file.read()


def blob_size(sha256: str) -> int:
    size_bytes = Blob.objects.filter(pk=sha256).values_list("size_bytes", flat=True).first()
    if size_bytes is None:
        raise BlobNotFound
    return size_bytes


def blob_is_held(sha256: str, *, holder: str) -> bool:
    return Blob.objects.filter(pk=sha256, holds__holder=holder).exists()


def held_count(holder: str) -> int:
    """How many blobs somebody holds."""
    return BlobHold.objects.filter(holder=holder).count()


def upload_of(subject: str) -> Upload | None:
    """How far a subject's upload is, if it has begun one."""
    return Upload.objects.filter(subject=subject).first()
