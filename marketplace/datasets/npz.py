"""Reads `.npz` uploads without unpickling and without unpacking more than was declared and allowed.

A `.npz` is a zip archive of `.npy` members. The archive's directory is bounded before `zipfile` reads it, members
are unpacked as streams that end at their declared size, and a declared size over the limit is refused unread.
"""

import math
import struct
import zipfile
import zlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np

from marketplace.datasets.arrays import (
    INPUT_NAMES,
    TARGET_NAMES,
    Array,
    ArraySource,
    UploadedArrays,
    chunk_rows,
)
from marketplace.errors import DatasetShape, DatasetTooLarge, DatasetUnreadable, DatasetUnsafe

MAX_MEMBERS = 16
MAX_DIRECTORY_BYTES = 16 * 1024
MAX_NPY_HEADER_BYTES = 4096
# Deflate cannot reach this on numbers that vary; an archive beyond it is made to exhaust memory or disk.
MAX_COMPRESSION_RATIO = 1_000
RATIO_FREE_BYTES = 1024 * 1024

_END_OF_DIRECTORY = struct.Struct("<4s4H2LH")
_ZIP64_LOCATOR = b"PK\x06\x07"
_ZIP64_LOCATOR_BYTES = 20
_READ_FAILURES = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    NotImplementedError,
    OSError,
    RuntimeError,
    ValueError,
)


def read_npz(path: Path, *, max_bytes: int) -> UploadedArrays:
    """The two arrays of an archive, still on disk. `max_bytes` bounds each array as it is declared."""
    _check_directory(path)
    try:
        with zipfile.ZipFile(path) as archive:
            members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
            inputs = _source(path, archive, members, INPUT_NAMES, max_bytes)
            targets = _source(path, archive, members, TARGET_NAMES, max_bytes)
    except _READ_FAILURES as error:
        raise _unreadable() from error
    return UploadedArrays(inputs, targets)


def _unreadable() -> DatasetUnreadable:
    return DatasetUnreadable(
        "file: not a whole .npz archive. Write it with numpy.savez(path, inputs=..., targets=...).",
        field="file",
    )


def _check_directory(path: Path) -> None:
    """Bounds the archive's directory by the record at its very end, which numpy writes without a comment."""
    with path.open("rb") as file:
        size_bytes = file.seek(0, 2)
        tail_bytes = _ZIP64_LOCATOR_BYTES + _END_OF_DIRECTORY.size
        file.seek(max(0, size_bytes - tail_bytes))
        tail = file.read()
    if len(tail) < _END_OF_DIRECTORY.size:
        raise _unreadable()
    record = _END_OF_DIRECTORY.unpack(tail[-_END_OF_DIRECTORY.size :])
    magic, _, _, _, members, directory_bytes, _, comment_bytes = record
    if magic != b"PK\x05\x06" or comment_bytes:
        raise _unreadable()
    if tail[: -_END_OF_DIRECTORY.size].startswith(_ZIP64_LOCATOR) or members > MAX_MEMBERS:
        raise DatasetTooLarge(
            f"file: the archive has more than {MAX_MEMBERS} members. Keep only inputs and targets.",
            field="file",
        )
    if directory_bytes > MAX_DIRECTORY_BYTES:
        raise DatasetTooLarge(
            "file: the archive's directory is too long. Use short member names.", field="file"
        )


def _source(
    path: Path,
    archive: zipfile.ZipFile,
    members: dict[str, zipfile.ZipInfo],
    names: tuple[str, str],
    max_bytes: int,
) -> ArraySource:
    info = next((members[name] for name in names if name in members), None)
    field = names[0]
    if info is None:
        raise DatasetShape(
            f"{field}: the archive has no array '{names[0]}' (or '{names[1]}'), only "
            f"{', '.join(sorted(members)) or 'nothing'}. Save it under that name.",
            field=field,
        )
    _check_member(info, field, max_bytes)
    with archive.open(info) as member:
        shape, fortran, dtype = _read_header(member, field)
        declared_bytes = info.file_size - member.tell()
    if math.prod(shape) * dtype.itemsize != declared_bytes:
        raise DatasetUnreadable(
            f"{field}: the array's header promises shape {shape} of {dtype}, but its data has "
            f"{declared_bytes} bytes. Write the file again.",
            field=field,
        )
    chunks = partial(_chunks, path, info.filename, field, fortran)
    return ArraySource(field, shape, dtype, chunks)


def _check_member(info: zipfile.ZipInfo, field: str, max_bytes: int) -> None:
    encrypted = info.flag_bits & 0x1
    if encrypted or info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise DatasetUnreadable(
            f"{field}: encrypted or compressed in an unusual way. Write it with numpy.savez.",
            field=field,
        )
    if info.file_size > max_bytes + MAX_NPY_HEADER_BYTES:
        raise DatasetTooLarge(
            f"{field}: unpacks to {info.file_size:,} bytes, over the limit of {max_bytes:,}. Upload less.",
            field=field,
        )
    if info.file_size > RATIO_FREE_BYTES and info.file_size > MAX_COMPRESSION_RATIO * max(
        1, info.compress_size
    ):
        raise DatasetUnsafe(
            f"{field}: {info.compress_size:,} bytes would unpack to {info.file_size:,}. "
            "Upload it uncompressed, with numpy.savez.",
            field=field,
        )


def _read_header(member: IO[bytes], field: str) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    try:
        version = np.lib.format.read_magic(member)
        shape, fortran, dtype = readers[version](member, max_header_size=MAX_NPY_HEADER_BYTES)
    except (
        ValueError,
        KeyError,
        SyntaxError,
        TypeError,
        MemoryError,
        RecursionError,
        *_READ_FAILURES,
    ) as error:
        raise DatasetUnreadable(
            f"{field}: its header is not a plain array's. Write it with numpy.savez.", field=field
        ) from error
    if dtype.hasobject:
        raise DatasetUnsafe(
            f"{field}: holds Python objects (pickled), which are never loaded. Convert it to numbers first.",
            field=field,
        )
    # A bool passes for a whole number in numpy's own check.
    if any(type(size) is not int or size < 0 for size in shape):
        raise DatasetUnreadable(
            f"{field}: its shape {shape} is not of sizes from 0 up. Write it with numpy.savez.", field=field
        )
    return shape, fortran, dtype


def _chunks(path: Path, member_name: str, field: str, fortran: bool) -> Iterator[Array]:
    try:
        with zipfile.ZipFile(path) as archive, archive.open(member_name) as member:
            shape, _, dtype = _read_header(member, field)
            # Rows of a column-major array are spread over all of it, so it is read in one piece.
            step = max(1, shape[0]) if fortran else chunk_rows(shape, dtype.itemsize)
            for start in range(0, shape[0], step):
                chunk_shape = (min(step, shape[0] - start), *shape[1:])
                wanted_bytes = math.prod(chunk_shape) * dtype.itemsize
                data = member.read(wanted_bytes)
                if len(data) != wanted_bytes:
                    raise EOFError(member_name)
                values = np.frombuffer(data, dtype=dtype)
                yield values.reshape(chunk_shape, order="F" if fortran else "C")
    except _READ_FAILURES as error:
        raise _unreadable() from error
