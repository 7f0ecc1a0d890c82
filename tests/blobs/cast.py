"""Blobs that the tests of blobs put, and how they look at the store's files."""

import hashlib
from pathlib import Path
from urllib.parse import urlsplit

CONTENT = bytes(range(256)) * 40  # 10,240 bytes
SHA256 = hashlib.sha256(CONTENT).hexdigest()


def sha256_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def local(url: str) -> str:
    """The address as a client on this host asks for it: path and query."""
    parts = urlsplit(url)
    return f"{parts.path}?{parts.query}"


def files_below(folder: Path) -> list[str]:
    return sorted(str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file())
