"""Tests of the scheduler have a blob store of their own."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def blob_root(settings, tmp_path) -> Path:
    settings.BLOB_ROOT = tmp_path / "blobs"
    return settings.BLOB_ROOT
