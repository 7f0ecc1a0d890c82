"""How far the local steps of a shard moved the model, small enough to upload: a byte or half of one per parameter.

Floating tensors are cut into blocks of 256 elements in row-major order. A block has one float32 scale, its
largest magnitude / 127, and one int8 per element, element / scale rounded half to even; a block of zeros has
scale 0. With 4 bits, 7 stands for 127 and a byte holds two elements. Other tensors travel as exact int64 differences.
The file is a safetensors file that `docs/programs.md` specifies.
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
from metal_kernels.program.graph import DTYPE_NAMES, DeltaBits, Value
from metal_kernels.tensorfile import TensorFile, tensorfile_dumps, tensorfile_loads

FORMAT: Final = "nightshift.delta"
VERSION: Final = "1"
BLOCK: Final = 256
LARGEST: Final[Mapping[DeltaBits, int]] = {8: 127, 4: 7}

# In the file, by kind of content, so that no tensor's name can collide with another's scales.
QUANTISED: Final[Mapping[DeltaBits, str]] = {8: "int8/", 4: "int4/"}
_SCALES: Final = "scales/"
_EXACT: Final = "exact/"
_HEADER_BYTES_PER_TENSOR: Final = 1024


class DeltaEncoder:
    """Encodes one model's deltas one after another, and adds to each what rounding lost of those before it."""

    def __init__(self, bits: DeltaBits = 8) -> None:
        self.residual: dict[str, Tensor] = {}
        self._bits: DeltaBits = bits

    def encode(self, base: Mapping[str, Tensor], new: Mapping[str, Tensor]) -> bytes:
        """The bytes of `new - base`, which have the same names, shapes and dtypes; NaN or infinity is refused."""
        _check_names(new.keys(), base.keys())
        stored: dict[str, Tensor] = {}
        residual: dict[str, Tensor] = {}
        for name, old in base.items():
            changed = new[name].detach()
            _check_same(name, old, changed)
            if old.is_floating_point():
                difference = changed.float() - old.detach().float()
                if name in self.residual:
                    difference += self.residual[name]
                _check_finite(name, difference)
                steps, scales = quantise(difference, self._bits)
                residual[name] = difference - dequantise(steps, scales)
                stored[QUANTISED[self._bits] + name] = steps if self._bits == 8 else pack_nibbles(steps)
                stored[_SCALES + name] = scales
            else:
                stored[_EXACT + name] = changed.to(torch.int64) - old.to(torch.int64)
        self.residual = residual
        return tensorfile_dumps(stored, metadata={"format": FORMAT, "version": VERSION})


def delta_encode(base: Mapping[str, Tensor], new: Mapping[str, Tensor], *, bits: DeltaBits = 8) -> bytes:
    """The bytes of a single delta, as `DeltaEncoder` makes its first."""
    return DeltaEncoder(bits).encode(base, new)


def delta_decode(data: bytes, *, spec: Mapping[str, Value], bits: DeltaBits = 8) -> dict[str, Tensor]:
    """The differences by name, float32 for floating tensors and int64 for others; `spec` is what must be
    there, in steps of `bits`.

    Raises a `DeltaError` for anything that an honest encoder of that model would not send.
    """
    if len(data) > _most_bytes(spec, bits):
        raise DeltaFormatError(
            f"The delta has {len(data)} bytes; this model's has at most {_most_bytes(spec, bits)}."
        )
    file = _parsed(data)
    wanted = {
        prefix + name
        for name, value in spec.items()
        for prefix in ((QUANTISED[bits], _SCALES) if value.dtype == "float32" else (_EXACT,))
    }
    _check_names(file.tensors.keys(), wanted)
    return {
        name: _decoded_floating(name, value, file, bits)
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


def quantise(values: Tensor, bits: DeltaBits = 8) -> tuple[Tensor, Tensor]:
    """(int8 of the same shape, float32 scales (blocks,)) of a finite float32 tensor."""
    largest = LARGEST[bits]
    blocks = _in_blocks(values)
    scales = blocks.abs().amax(dim=1) / largest
    # A scale of 0 also stands for magnitudes too small for a float32 scale.
    steps = torch.where(scales[:, None] > 0, blocks / scales[:, None], 0.0)
    quantised = steps.round().clamp(-largest, largest).to(torch.int8)
    return quantised.flatten()[: values.numel()].reshape(values.shape), scales


def dequantise(quantised: Tensor, scales: Tensor) -> Tensor:
    """The float32 tensor that `quantise` stood for."""
    values = _in_blocks(quantised.float()) * scales[:, None]
    return values.flatten()[: quantised.numel()].reshape(quantised.shape)


def pack_nibbles(steps: Tensor) -> Tensor:
    """int8 (half as many, rounded up): two steps of -8 to 7 a byte, the first in the low half, 0 after the last."""
    pairs = torch.nn.functional.pad(steps.flatten(), (0, steps.numel() % 2)).reshape(-1, 2)
    return (pairs[:, 0] & 15) | (pairs[:, 1] << 4)


def unpack_nibbles(packed: Tensor) -> Tensor:
    """int8 (twice as many): the steps in their order."""
    return torch.stack([(packed << 4) >> 4, packed >> 4], dim=1).flatten()


def _in_blocks(values: Tensor) -> Tensor:
    """Shape (blocks, 256), the last block filled up with zeros."""
    flat = values.flatten()
    return torch.nn.functional.pad(flat, (0, -len(flat) % BLOCK)).reshape(-1, BLOCK)


def _block_count(value: Value) -> int:
    return -(-value.elements // BLOCK)


def _step_bytes(value: Value, bits: DeltaBits) -> int:
    return -(-value.elements * bits // 8)


def _most_bytes(spec: Mapping[str, Value], bits: DeltaBits) -> int:
    body_bytes = sum(
        _step_bytes(value, bits) + 4 * _block_count(value) if value.dtype == "float32" else 8 * value.elements
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


def _check_same(name: str, old: Tensor, changed: Tensor) -> None:
    if changed.shape != old.shape or changed.dtype != old.dtype:
        raise DeltaShapeMismatch(
            f"Tensor '{name}' is {changed.dtype} {list(changed.shape)} but started as {old.dtype} {list(old.shape)}.",
            field=name,
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


def _decoded_floating(name: str, value: Value, file: TensorFile, bits: DeltaBits) -> Tensor:
    stored, scales = file.tensors[QUANTISED[bits] + name], file.tensors[_SCALES + name]
    _check_stored(name, stored, value.shape if bits == 8 else (_step_bytes(value, bits),), torch.int8)
    _check_stored(name, scales, (_block_count(value),), torch.float32)
    _check_finite(name, scales)
    steps = stored.flatten() if bits == 8 else unpack_nibbles(stored)
    if (
        bool((scales < 0).any())
        or bool((steps < -LARGEST[bits]).any())
        or bool(steps[value.elements :].any())
    ):
        raise DeltaFormatError(
            f"Tensor '{name}' has a negative scale, the step {-LARGEST[bits] - 1}, or steps past its end.",
            field=name,
        )
    values = dequantise(steps[: value.elements].reshape(value.shape), scales)
    _check_finite(name, values)
    return values


def _decoded_exact(name: str, value: Value, file: TensorFile) -> Tensor:
    difference = file.tensors[_EXACT + name]
    _check_stored(name, difference, value.shape, torch.int64)
    return difference
