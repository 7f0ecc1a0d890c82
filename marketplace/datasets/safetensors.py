"""Reads `.safetensors` uploads, mapped into memory and walked in chunks of rows."""

import struct
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open

from marketplace.datasets.arrays import (
    INPUT_NAMES,
    TARGET_NAMES,
    Array,
    ArraySource,
    UploadedArrays,
    chunk_rows,
)
from marketplace.errors import DatasetDtype, DatasetShape, DatasetTooLarge, DatasetUnreadable

MAX_HEADER_BYTES = 64 * 1024
_DTYPES = {
    "F64": "float64",
    "F32": "float32",
    "F16": "float16",
    "I64": "int64",
    "I32": "int32",
    "I16": "int16",
    "I8": "int8",
    "U64": "uint64",
    "U32": "uint32",
    "U16": "uint16",
    "U8": "uint8",
    "BOOL": "bool",
}


def read_safetensors(path: Path) -> UploadedArrays:
    """The two arrays of a file, still on disk. Nothing is compressed, so the file's size bounds them."""
    _check_header_length(path)
    try:
        with safe_open(path, framework="numpy") as tensors:
            names = set(tensors.keys())
    except SafetensorError as error:
        raise _unreadable() from error
    return UploadedArrays(_source(path, names, INPUT_NAMES), _source(path, names, TARGET_NAMES))


def _unreadable() -> DatasetUnreadable:
    return DatasetUnreadable(
        "file: not a whole .safetensors file. Write it with safetensors' save_file and upload it again.",
        field="file",
    )


def _check_header_length(path: Path) -> None:
    with path.open("rb") as file:
        prefix = file.read(8)
    if len(prefix) < 8:
        raise _unreadable()
    (header_bytes,) = struct.unpack("<Q", prefix)
    if header_bytes > path.stat().st_size:
        raise _unreadable()
    if header_bytes > MAX_HEADER_BYTES:
        raise DatasetTooLarge(
            f"file: its header has {header_bytes:,} bytes, over the limit of {MAX_HEADER_BYTES:,}. "
            "Keep only the tensors inputs and targets, without metadata.",
            field="file",
        )


def _source(path: Path, present: set[str], names: tuple[str, str]) -> ArraySource:
    field = names[0]
    name = next((name for name in names if name in present), None)
    if name is None:
        raise DatasetShape(
            f"{field}: the file has no tensor '{names[0]}' (or '{names[1]}'), only "
            f"{', '.join(sorted(present)) or 'nothing'}. Save it under that name.",
            field=field,
        )
    with safe_open(path, framework="numpy") as tensors:
        part = tensors.get_slice(name)
        shape, dtype_name = tuple(part.get_shape()), part.get_dtype()
    if dtype_name not in _DTYPES:
        raise DatasetDtype(f"{field}: of dtype {dtype_name}. Save it as float32 or int64.", field=field)
    dtype = np.dtype(_DTYPES[dtype_name])
    return ArraySource(field, shape, dtype, partial(_chunks, path, name, chunk_rows(shape, dtype.itemsize)))


def _chunks(path: Path, name: str, step: int) -> Iterator[Array]:
    with safe_open(path, framework="numpy") as tensors:
        part = tensors.get_slice(name)
        rows = part.get_shape()[0]
        for start in range(0, rows, step):
            yield part[start : min(start + step, rows)]
