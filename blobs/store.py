"""Files of the blob store: `BLOB_ROOT/ab/cdef...` for the blob `abcdef...`, plus what is still on its way in.

Content is written to a file of its own in `incoming/` while it is hashed, flushed to the disk, and renamed into
place: a file under a hash is always whole, and several writers of the same content do no harm. The rows that say who
holds a blob are `blobs.services`' business.
"""

import hashlib
import os
import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from django.conf import settings

from blobs.errors import BlobNotFound

CHUNK_BYTES = 256 * 1024

_SHA256 = re.compile(r"[0-9a-f]{64}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Incoming:
    """Content that lies whole and flushed in a file, not in its place yet."""

    path: Path
    sha256: str
    size_bytes: int


def is_sha256(text: str) -> bool:
    return _SHA256.fullmatch(text) is not None


def blob_file(sha256: str) -> Path:
    """Where the blob's file lies, if there is one. Raises BlobNotFound for what is not a hash at all."""
    if not is_sha256(sha256):
        raise BlobNotFound
    return _root() / sha256[:2] / sha256[2:]


@contextmanager
def incoming(data: BinaryIO) -> Iterator[Incoming]:
    """Write a stream into a file of its own while hashing it; the file is gone afterwards unless it was placed."""
    folder = _folder("incoming")
    path = folder / str(uuid.uuid4())
    try:
        digest, size_bytes = hashlib.sha256(), 0
        with path.open("xb") as file:
            while chunk := data.read(CHUNK_BYTES):
                digest.update(chunk)
                size_bytes += file.write(chunk)
            _flush(file)
        yield Incoming(path, digest.hexdigest(), size_bytes)
    finally:
        path.unlink(missing_ok=True)


def place(content: Incoming) -> None:
    """Put incoming content under its hash, in one step that survives a crash of the machine."""
    target = blob_file(content.sha256)
    if not target.parent.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        _flush_folder(target.parent.parent)
    content.path.replace(target)
    _flush_folder(target.parent)


def remove(sha256: str) -> None:
    blob_file(sha256).unlink(missing_ok=True)


def blobs_last_written_before(moment: datetime) -> Iterator[tuple[str, set[str]]]:
    """Old files, folder by folder: the two digits their hashes begin with, and the hashes."""
    for folder in sorted(_root().glob("[0-9a-f][0-9a-f]")):
        names = {folder.name + file.name for file in folder.iterdir() if is_older(file, moment)}
        if names:
            yield folder.name, names


def is_older(file: Path, moment: datetime) -> bool:
    try:
        return datetime.fromtimestamp(file.stat().st_mtime, tz=UTC) < moment
    except FileNotFoundError:
        return False


def upload_write(upload_id: uuid.UUID, *, first: int, length: int, data: BinaryIO) -> int:
    """Write up to `length` bytes of the stream at byte `first` of an upload's file; returns how many came."""
    handle = os.open(upload_file(upload_id), os.O_RDWR | os.O_CREAT, 0o600)
    with os.fdopen(handle, "r+b") as file:
        file.seek(first)
        left = length
        while left and (chunk := data.read(min(left, CHUNK_BYTES))):
            left -= file.write(chunk)
        _flush(file)
    return length - left


def upload_file(upload_id: uuid.UUID) -> Path:
    return _folder("uploads") / str(upload_id)


def leftovers_remove(*, older_than: datetime, uploads: set[str]) -> None:
    """Remove old files that a crash left behind: all in `incoming/`, and in `uploads/` those of no known upload."""
    for file in (*_folder("incoming").iterdir(), *_folder("uploads").iterdir()):
        if file.name not in uploads and is_older(file, older_than):
            file.unlink(missing_ok=True)


def _root() -> Path:
    return Path(settings.BLOB_ROOT)


def _folder(name: str) -> Path:
    folder = _root() / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _flush(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


def _flush_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
