"""Static files, compressed: once for each version of a file, in the site's data folder, and not with each answer.

Pages stay as they are: what holds a secret beside something a stranger may choose must not be compressed (BREACH).
"""

import gzip
import hashlib
import os
import tempfile
from pathlib import Path

from django.conf import settings
from whitenoise.middleware import WhiteNoiseMiddleware
from whitenoise.responders import StaticFile

SUFFIXES = {".css", ".js", ".json", ".svg"}


class StaticFilesMiddleware(WhiteNoiseMiddleware):
    """WhiteNoise, which looks for a file's compressed twin beside it in the sources; here they are kept apart."""

    def get_static_file(
        self, path: str, url: str, stat_cache: dict[str, os.stat_result] | None = None
    ) -> StaticFile:
        plain: StaticFile = super().get_static_file(path, url, stat_cache)
        if self.autorefresh or Path(path).suffix not in SUFFIXES:
            return plain
        ((_, _, headers),) = plain.alternatives
        return StaticFile(path, headers, encodings={"gzip": str(_twin(Path(path)))})


def _twin(path: Path) -> Path:
    """The compressed file, made if it is not there yet; its name changes with the file."""
    known = path.stat()
    name = hashlib.sha256(f"{path}\0{known.st_mtime_ns}\0{known.st_size}".encode()).hexdigest()
    twin: Path = settings.VAR_DIR / "static" / f"{name}.gz"
    if not twin.exists():
        twin.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=twin.parent, delete=False) as unfinished:
            unfinished.write(gzip.compress(path.read_bytes(), mtime=0))
        Path(unfinished.name).replace(twin)  # as other processes start too
    return twin
