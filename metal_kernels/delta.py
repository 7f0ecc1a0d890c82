"""How far the local steps of a shard moved the model, small enough to upload: about one byte per parameter.

Floating tensors are cut into blocks of 256 elements in row-major order. A block has one float32 scale, its
largest magnitude / 127, and one int8 per element, element / scale rounded half to even; a block of zeros has
scale 0. Other tensors travel as exact int64 differences. The file is a safetensors file that
`docs/programs.md` specifies.
"""

import math
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Final

import torch
from torch import Tensor

from metal_kernels.errors import (
    DeltaFormatError,
    DeltaNameMismatch,
    DeltaNotFinite,
    DeltaShapeMismatch,
    TensorFileError,
)
from metal_kernels.program.graph import DTYPE_NAMES, Value
from metal_kernels.tensorfile import TensorFile, tensorfile_dumps, tensorfile_loads

FORMAT: Final = "nightshift.delta"
VERSION: Final = "1"
BLOCK: Final = 256
LARGEST: Final = 127

# In the file, by kind of content, so that no tensor's name can collide with another's scales.
_QUANTISED: Final = "int8/"
_SCALES: Final = "scales/"
_EXACT: Final = "exact/"
_HEADER_BYTES_PER_TENSOR: Final = 1024


def delta_encode(base: Mapping[str, Tensor], new: Mapping[str, Tensor]) -> bytes:
    """The bytes of `new - base`, which have the same names, shapes and dtypes; NaN or infinity is refused."""
    _check_names(new.keys(), base.keys())
    stored: dict[str, Tensor] = {}
    for name, old in base.items():
        changed = new[name].detach()
        if changed.shape != old.shape or changed.dtype != old.dtype:
            raise DeltaShapeMismatch(
                f"Tensor '{name}' is {changed.dtype} {list(changed.shape)} but started as {old.dtype} "
                f"{list(old.shape)}.",
                field=name,
            )
        if old.is_floating_point():
            difference = changed.float() - old.detach().float()
            _check_finite(name, difference)
            stored[_QUANTISED + name], stored[_SCALES + name] = quantise(difference)
        else:
            stored[_EXACT + name] = changed.to(torch.int64) - old.to(torch.int64)
    return tensorfile_dumps(stored, metadata={"format": FORMAT, "version": VERSION})


def delta_decode(data: bytes, *, spec: Mapping[str, Value]) -> dict[str, Tensor]:
    """The differences by name, float32 for floating tensors and int64 for others; `spec` is what must be
    there.

    Raises a `DeltaError` for anything that an honest encoder of that model would not send.
    """
    if len(data) > _most_bytes(spec):
        raise DeltaFormatError(
            f"The delta has {len(data)} bytes; this model's has at most {_most_bytes(spec)}."
        )
    file = _parsed(data)
    wanted = {
        prefix + name
        for name, value in spec.items()
        for prefix in ((_QUANTISED, _SCALES) if value.dtype == "float32" else (_EXACT,))
    }
    _check_names(file.tensors.keys(), wanted)
    return {
        name: _decoded_floating(name, value, file)
        if value.dtype == "float32"
        else _decoded_exact(name, value, file)
        for name, value in spec.items()
    }


def delta_apply(base: Mapping[str, Tensor], delta: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors that `delta` leads to from `base`."""
    _check_names(delta.keys(), base.keys())
    return {
        name: old + delta[name]
        if old.is_floating_point()
        else (old.to(torch.int64) + delta[name]).to(old.dtype)
        for name, old in base.items()
    }


def delta_norm(delta: Mapping[str, Tensor]) -> float:
    """The Euclidean norm over all floating tensors of a decoded delta."""
    return math.sqrt(
        sum(float(part.double().square().sum()) for part in delta.values() if part.is_floating_point())
    )


def tensor_spec(tensors: Mapping[str, Tensor]) -> dict[str, Value]:
    """The spec of a model given as tensors; `Program.model_spec` gives the same from a program."""
    return {
        name: Value(name, DTYPE_NAMES[tensor.dtype], tuple(tensor.shape)) for name, tensor in tensors.items()
    }


def quantise(values: Tensor) -> tuple[Tensor, Tensor]:
    """(int8 of the same shape, float32 scales (blocks,)) of a finite float32 tensor."""
    blocks = _in_blocks(values)
    scales = blocks.abs().amax(dim=1) / LARGEST
    # A scale of 0 also stands for magnitudes too small for a float32 scale.
    steps = torch.where(scales[:, None] > 0, blocks / scales[:, None], 0.0)
    quantised = steps.round().clamp(-LARGEST, LARGEST).to(torch.int8)
    return quantised.flatten()[: values.numel()].reshape(values.shape), scales


def dequantise(quantised: Tensor, scales: Tensor) -> Tensor:
    """The float32 tensor that `quantise` stood for."""
    values = _in_blocks(quantised.float()) * scales[:, None]
    return values.flatten()[: quantised.numel()].reshape(quantised.shape)


def _in_blocks(values: Tensor) -> Tensor:
    """Shape (blocks, 256), the last block filled up with zeros."""
    flat = values.flatten()
    return torch.nn.functional.pad(flat, (0, -len(flat) % BLOCK)).reshape(-1, BLOCK)


def _block_count(value: Value) -> int:
    return -(-value.elements // BLOCK)


def _most_bytes(spec: Mapping[str, Value]) -> int:
    body_bytes = sum(
        value.elements + 4 * _block_count(value) if value.dtype == "float32" else 8 * value.elements
        for value in spec.values()
    )
    header_bytes = sum(_HEADER_BYTES_PER_TENSOR + 12 * len(name) for name in spec)
    return body_bytes + header_bytes + _HEADER_BYTES_PER_TENSOR


def _parsed(data: bytes) -> TensorFile:
    try:
        file = tensorfile_loads(data)
    except TensorFileError as error:
        raise DeltaFormatError(error.message, field=error.field) from error
    found = (file.metadata.get("format"), file.metadata.get("version"))
    if found != (FORMAT, VERSION):
        raise DeltaFormatError(
            f"The file is not a delta of version {VERSION}; its format and version are {found}."
        )
    return file


def _check_names(found: AbstractSet[str], wanted: AbstractSet[str]) -> None:
    missing, unexpected = wanted - found, found - wanted
    if missing:
        raise DeltaNameMismatch(f"The tensor '{min(missing)}' is missing.", field=min(missing))
    if unexpected:
        raise DeltaNameMismatch(
            f"The tensor '{min(unexpected):.200}' is not the model's.", field=min(unexpected)
        )


def _check_finite(name: str, values: Tensor) -> None:
    if not bool(torch.isfinite(values).all()):
        raise DeltaNotFinite(f"Tensor '{name}' has NaN or infinite values.", field=name)


def _check_stored(name: str, tensor: Tensor, shape: tuple[int, ...], dtype: torch.dtype) -> None:
    if tuple(tensor.shape) != shape or tensor.dtype != dtype:
        raise DeltaShapeMismatch(
            f"Tensor '{name}' is stored as {tensor.dtype} {list(tensor.shape)}; it should be {dtype} "
            f"{list(shape)}.",
            field=name,
        )


def _decoded_floating(name: str, value: Value, file: TensorFile) -> Tensor:
    quantised, scales = file.tensors[_QUANTISED + name], file.tensors[_SCALES + name]
    _check_stored(name, quantised, value.shape, torch.int8)
    _check_stored(name, scales, (_block_count(value),), torch.float32)
    _check_finite(name, scales)
    if bool((scales < 0).any()) or bool((quantised < -LARGEST).any()):
        raise DeltaFormatError(f"Tensor '{name}' has a negative scale or the step -128.", field=name)
    values = dequantise(quantised, scales)
    _check_finite(name, values)
    return values


def _decoded_exact(name: str, value: Value, file: TensorFile) -> Tensor:
    difference = file.tensors[_EXACT + name]
    _check_stored(name, difference, value.shape, torch.int64)
    return difference
