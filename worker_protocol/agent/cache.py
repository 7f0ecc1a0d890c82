"""Blobs on disk, by hash, within a size: the least recently used go first."""

import hashlib
import os
from pathlib import Path


class BlobCache:
    """`<hash>` is a whole blob, `<hash>.part` the beginning of one. Nothing is trusted: a read checks the hash."""

    def __init__(self, folder: Path, *, max_bytes: int) -> None:
        self._folder = folder
        self._max_bytes = max_bytes
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def read(self, sha256: str) -> bytes | None:
        """The blob, or None if it is not here; a spoilt file is removed."""
        path = self._folder / sha256
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return None
        if hashlib.sha256(data).hexdigest() != sha256:
            path.unlink(missing_ok=True)
            return None
        os.utime(path)  # used now
        return data

    def part(self, sha256: str) -> Path:
        """Where a download of the blob collects its bytes."""
        return self._folder / f"{sha256}.part"

    def keep(self, sha256: str) -> None:
        """The part is whole: make it the blob, and make room by dropping what was used longest ago."""
        path = self._folder / sha256
        self.part(sha256).replace(path)
        os.utime(path)
        self._make_room(keep=path)

    def held(self, limit: int) -> list[str]:
        """Hashes of whole blobs, the most recently used first."""
        whole = [path for path in self._by_last_use() if not path.suffix]
        return [path.name for path in reversed(whole)][:limit]

    def _make_room(self, *, keep: Path) -> None:
        files = self._by_last_use()
        held_bytes = sum(path.stat().st_size for path in files)
        for path in files:
            if held_bytes <= self._max_bytes:
                return
            if path != keep:
                held_bytes -= path.stat().st_size
                path.unlink()

    def _by_last_use(self) -> list[Path]:
        return sorted(self._folder.iterdir(), key=lambda path: path.stat().st_mtime_ns)
