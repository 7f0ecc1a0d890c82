"""Every test of blobs has a store of its own, and the addresses of blobs alone."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def blob_root(settings, tmp_path: Path) -> Path:
    settings.ROOT_URLCONF = "blobs.urls"
    settings.BLOB_ROOT = root = tmp_path / "blobs"
    return root
