"""Read and write safetensors files, strictly and with the same bytes every time.

The library's writer orders metadata by a random hash and its reader hides metadata from byte strings;
programs and deltas are addressed by their hash and carry metadata, so they need both. The format: eight bytes
of header length (little endian), a JSON header `{name: {dtype, shape, data_offsets}, "__metadata__": {str:
str}}`, then the tensors' bytes without gaps. Here headers are written with sorted keys and padded with spaces
to eight bytes.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, Final

import msgspec
import torch
from torch import Tensor

from metal_kernels.errors import TensorFileError

DTYPES: Final[dict[str, torch.dtype]] = {
    "F32": torch.float32,
    "I64": torch.int64,
    "I32": torch.int32,
    "I8": torch.int8,
    "BOOL": torch.bool,
}
_TAGS: Final = {dtype: tag for tag, dtype in DTYPES.items()}
_MAX_HEADER_BYTES: Final = 64 * 2**20
_MAX_DIMENSIONS: Final = 16
_METADATA: Final = "__metadata__"


@dataclass(frozen=True)
class TensorFile:
    tensors: dict[str, Tensor]
    metadata: dict[str, str]


def tensorfile_dumps(tensors: Mapping[str, Tensor], *, metadata: Mapping[str, str] | None = None) -> bytes:
    """Serialise CPU or GPU tensors; equal input gives equal bytes. Names are stored in sorted order."""
    header: dict[str, Any] = {_METADATA: dict(metadata)} if metadata else {}
    chunks: list[bytes] = []
    offset = 0
    for name in sorted(tensors):
        tensor = tensors[name]
        if name == _METADATA or tensor.dtype not in _TAGS:
            raise TensorFileError(
                f"Tensor '{name}' of {tensor.dtype} cannot be stored; use one of {', '.join(DTYPES)}.",
                field=name,
            )
        chunk = tensor.detach().cpu().contiguous().numpy().tobytes()
        header[name] = {
            "dtype": _TAGS[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [offset, offset + len(chunk)],
        }
        chunks.append(chunk)
        offset += len(chunk)
    text = json.dumps(header, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()
    text += b" " * (-len(text) % 8)
    return b"".join([len(text).to_bytes(8, "little"), text, *chunks])


def tensorfile_loads(data: bytes) -> TensorFile:
    """Parse `data` or raise `TensorFileError`. The tensors own their memory."""
    header, body = _header_and_body(data)
    metadata = _metadata(header.pop(_METADATA, {}))
    entries = sorted(
        ((name, _entry(name, raw)) for name, raw in header.items()), key=lambda item: item[1].data_offsets
    )
    tensors: dict[str, Tensor] = {}
    expected_start = 0
    for name, entry in entries:
        start, end = entry.data_offsets
        dtype = DTYPES[entry.dtype]
        if start != expected_start or end - start != prod(entry.shape) * dtype.itemsize or end > len(body):
            raise TensorFileError(
                f"Tensor '{name}' does not lie where its shape says; send the file again.", field=name
            )
        tensors[name] = _tensor(bytes(body[start:end]), dtype, entry.shape)
        expected_start = end
    if expected_start != len(body):
        raise TensorFileError("The file is longer than its tensors; send it again.")
    return TensorFile(tensors, metadata)


class _Entry(msgspec.Struct, forbid_unknown_fields=True):
    dtype: str
    shape: tuple[int, ...]
    data_offsets: tuple[int, int]


def _header_and_body(data: bytes) -> tuple[dict[str, Any], memoryview]:
    header_bytes = int.from_bytes(data[:8], "little")
    if len(data) < 8 or header_bytes > min(len(data) - 8, _MAX_HEADER_BYTES):
        raise TensorFileError("The file is cut short or is not a safetensors file; send it again.")
    try:
        # As text: from bytes, the library would take other encodings too.
        header = json.loads(data[8 : 8 + header_bytes].decode(), object_pairs_hook=_without_duplicates)
    except (ValueError, RecursionError) as error:
        raise TensorFileError("The safetensors header is not valid JSON; send the file again.") from error
    if not isinstance(header, dict):
        raise TensorFileError("The safetensors header is not an object; send the file again.")
    return header, memoryview(data)[8 + header_bytes :]


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("duplicate key")
    return result


def _metadata(raw: object) -> dict[str, str]:
    try:
        return msgspec.convert(raw, dict[str, str])
    except msgspec.ValidationError as error:
        raise TensorFileError("The safetensors metadata must map text to text.") from error


def _entry(name: str, raw: object) -> _Entry:
    try:
        entry = msgspec.convert(raw, _Entry)
    except msgspec.ValidationError as error:
        raise TensorFileError(
            f"The header entry of tensor '{name}' is malformed: {error}.", field=name
        ) from error
    if entry.dtype not in DTYPES:
        raise TensorFileError(
            f"Tensor '{name}' has dtype {entry.dtype}; use one of {', '.join(DTYPES)}.", field=name
        )
    if len(entry.shape) > _MAX_DIMENSIONS or any(size < 0 for size in (*entry.shape, *entry.data_offsets)):
        raise TensorFileError(f"Tensor '{name}' has an impossible shape or place.", field=name)
    return entry


def _tensor(chunk: bytes, dtype: torch.dtype, shape: tuple[int, ...]) -> Tensor:
    if dtype is torch.bool and chunk.strip(b"\0\1"):
        raise TensorFileError("A boolean tensor holds a byte other than 0 and 1.")
    if not chunk:
        return torch.empty(shape, dtype=dtype)
    return torch.frombuffer(bytearray(chunk), dtype=dtype).reshape(shape)
