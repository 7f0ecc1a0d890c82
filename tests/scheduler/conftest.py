"""Tests of the scheduler have a blob store of their own."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def blob_root(settings, tmp_path) -> Path:
    root: Path = tmp_path / "blobs"
    settings.BLOB_ROOT = root
    return root
