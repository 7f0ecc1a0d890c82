"""Writes the upload files of the dataset tests, sound and hostile."""

import io
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from marketplace.datasets.canonical import Plan, Task, open_canonical, plan, write_canonical
from marketplace.datasets.csv_table import read_csv
from marketplace.datasets.npz import read_npz
from marketplace.datasets.safetensors import read_safetensors
from marketplace.datasets.statistics import Statistics

MAX_BYTES = 8 * 1024 * 1024


def npz(**arrays: Any) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def classes_npz(rows: int = 12, width: int = 4, classes: int = 3) -> bytes:
    return npz(inputs=np.arange(rows * width).reshape(rows, width) / 7, targets=np.arange(rows) % classes)


def zip_of(**members: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def npy(header: str, data: bytes = b"") -> bytes:
    """A `.npy` file with any text for a header."""
    text = header.encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + data


def ingest(
    path: Path,
    data: bytes,
    *,
    task: Task | None = None,
    target_column: str | None = None,
    max_bytes: int = MAX_BYTES,
):
    """Everything that happens to an upload before it is stored: (layout, statistics, inputs, targets)."""
    path.write_bytes(data)
    match path.suffix:
        case ".npz":
            arrays = read_npz(path, max_bytes=max_bytes)
        case ".csv":
            arrays = read_csv(path, target_column=target_column)
        case _:
            arrays = read_safetensors(path)
    layout: Plan = plan(arrays, max_bytes=max_bytes, task=task)
    canonical = path.with_suffix(".canonical")
    with canonical.open("wb") as out:
        statistics: Statistics = write_canonical(arrays, layout, out)
    inputs, targets = open_canonical(canonical)
    return layout, statistics, inputs, targets
