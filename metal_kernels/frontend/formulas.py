"""Operations of torch that a program does not have, as formulas of those that it has."""

import math
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import torch
from torch import Tensor

from metal_kernels.errors import UnsupportedOp

aten: Final = torch.ops.aten

Table: TypeAlias = dict[Any, Callable[..., Any]]


def own_table() -> Table:
    return {
        aten.copy.default: _copy,
        aten.addbmm.default: _addbmm,
        aten.addmv.default: _addmv,
        aten.tan.default: lambda x: x.sin() / x.cos(),
        aten.atan.default: lambda x: torch.atan2(x, torch.ones_like(x)),
        aten.asin.default: lambda x: torch.atan2(x, torch.sqrt((1 - x) * (1 + x))),
        aten.acos.default: lambda x: torch.atan2(torch.sqrt((1 - x) * (1 + x)), x),
        aten.sinh.default: _sinh,
        aten.cosh.default: lambda x: (torch.exp(x) + torch.exp(-x)) * 0.5,
        aten.asinh.default: _asinh,
        aten.acosh.default: lambda x: torch.log(x + torch.sqrt((x - 1) * (x + 1))),
        aten.atanh.default: lambda x: (torch.log1p(x) - torch.log1p(-x)) * 0.5,
        aten.erfc.default: lambda x: 1 - torch.erf(x),
        aten.log10.default: lambda x: torch.log(x) * (1 / math.log(10)),
        aten.exp2.default: lambda x: torch.exp(x * math.log(2)),
        aten.hypot.default: lambda a, b: torch.sqrt(a * a + b * b),
        aten.any.default: lambda x: (x != 0).sum() > 0,
        aten.any.dims: lambda x, dim=None, keepdim=False: (x != 0).sum(dim, keepdim=keepdim) > 0,
        aten.bucketize.Tensor: _bucketize,
        aten.diagonal.default: _diagonal,
        aten.floor_divide.default: lambda a, b: torch.div(a, b, rounding_mode="floor"),
        aten.__lshift__.Scalar: lambda x, bits: x * 2**bits,
        aten.bitwise_left_shift.Tensor_Scalar: lambda x, bits: x * 2**bits,
        aten.hardshrink_backward.default: _hardshrink_backward,
        aten.softshrink_backward.default: _hardshrink_backward,
        aten._weight_norm_interface_backward.default: _weight_norm_backward,
        aten._trilinear.default: _trilinear,
        aten.adaptive_max_pool2d.default: _adaptive_max_pool,
        aten.adaptive_max_pool2d_backward.default: _adaptive_max_pool_backward,
        aten.bitwise_and.Scalar: lambda x, other: torch.bitwise_and(x, torch.full_like(x, other)),
        aten.bitwise_or.Scalar: lambda x, other: torch.bitwise_or(x, torch.full_like(x, other)),
        aten.upsample_bilinear2d.default: _bilinear,
        aten.upsample_bilinear2d_backward.default: _bilinear_backward,
        aten.upsample_nearest2d_backward.default: _nearest_backward,
        aten.upsample_nearest1d_backward.default: _nearest_backward_1d,
        aten.native_group_norm.default: _group_norm,
        aten.native_group_norm_backward.default: _group_norm_backward,
        aten._unsafe_index.Tensor: lambda x, indices: aten.index.Tensor(x, indices),
        aten._unsafe_index_put.default: aten.index_put.default,
    }


def _copy(old: Tensor, new: Tensor, non_blocking: bool = False) -> Tensor:
    """What an in-place copy becomes: the new value in the old one's dtype and shape."""
    return new.to(old.dtype).expand(old.shape)


def _addbmm(added: Tensor, a: Tensor, b: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    return added * beta + torch.bmm(a, b).sum(0) * alpha


def _addmv(added: Tensor, matrix: Tensor, vector: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    return added * beta + torch.mm(matrix, vector.unsqueeze(1)).squeeze(1) * alpha


def _asinh(x: Tensor) -> Tensor:
    square = x * x
    return torch.sign(x) * torch.log1p(x.abs() + square / (1 + torch.sqrt(1 + square)))


def _sinh(x: Tensor) -> Tensor:
    grown = torch.expm1(x.abs())
    return torch.sign(x) * 0.5 * (grown + grown / (grown + 1))


def _bucketize(x: Tensor, boundaries: Tensor, *, out_int32: bool = False, right: bool = False) -> Tensor:
    passed = boundaries <= x.unsqueeze(-1) if right else boundaries < x.unsqueeze(-1)
    return passed.sum(-1, dtype=torch.int32 if out_int32 else torch.int64)


def _diagonal(x: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    moved = x.movedim((dim1, dim2), (-2, -1))
    rows, columns = moved.shape[-2:]
    start = offset if offset >= 0 else -offset * columns
    length = min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns)
    flat = moved.reshape(*moved.shape[:-2], rows * columns)
    return flat[..., start : start + (length - 1) * (columns + 1) + 1 : columns + 1]


def _hardshrink_backward(gradient: Tensor, x: Tensor, lambd: float) -> Tensor:
    return torch.where(x.abs() <= lambd, 0.0, gradient)


def _weight_norm_backward(
    gradient: Tensor, v: Tensor, g: Tensor, norms: Tensor, dim: int
) -> tuple[Tensor, Tensor]:
    others = [axis for axis in range(v.dim()) if axis != dim % v.dim()]
    along = (gradient * v).sum(others, keepdim=True)
    norm = norms.reshape(along.shape)
    return g / norm * (gradient - v * along / (norm * norm)), along / norm


def _trilinear(
    a: Tensor,
    b: Tensor,
    c: Tensor,
    expand1: Sequence[int],
    expand2: Sequence[int],
    expand3: Sequence[int],
    sumdim: Sequence[int],
    unroll_dim: int = 1,
) -> Tensor:
    for dims, place in ((expand1, 0), (expand2, 1), (expand3, 2)):
        for dim in dims:
            a, b, c = (one.unsqueeze(dim) if at == place else one for at, one in enumerate((a, b, c)))
    return (a * b * c).sum(list(sumdim))


def _group_norm(
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    rows: int,
    channels: int,
    pixels: int,
    groups: int,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """The normalised tensor, and the mean and the reciprocal deviation of each group."""
    grouped = x.reshape(rows, groups, -1)
    variance, mean = torch.var_mean(grouped, dim=2, correction=0)
    rate = torch.rsqrt(variance + eps)
    normal = ((grouped - mean.unsqueeze(2)) * rate.unsqueeze(2)).reshape(rows, channels, -1)
    if weight is not None:
        normal = normal * weight.reshape(1, channels, 1)
    if bias is not None:
        normal = normal + bias.reshape(1, channels, 1)
    return normal.reshape(x.shape), mean, rate


def _group_norm_backward(
    gradient: Tensor,
    x: Tensor,
    mean: Tensor,
    rate: Tensor,
    weight: Tensor | None,
    rows: int,
    channels: int,
    pixels: int,
    groups: int,
    output_mask: Sequence[bool],
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    normal = (x.reshape(rows, groups, -1) - mean.unsqueeze(2)) * rate.unsqueeze(2)
    by_channel = gradient.reshape(rows, channels, -1)
    weighted = by_channel if weight is None else by_channel * weight.reshape(1, channels, 1)
    grouped = weighted.reshape(rows, groups, -1)
    common = grouped.mean(2, keepdim=True) + normal * (grouped * normal).mean(2, keepdim=True)
    return (
        ((grouped - common) * rate.unsqueeze(2)).reshape(x.shape) if output_mask[0] else None,
        (by_channel * normal.reshape(by_channel.shape)).sum((0, 2)) if output_mask[1] else None,
        by_channel.sum((0, 2)) if output_mask[2] else None,
    )


# Upsampling is linear along each axis: a product with a small constant matrix of (larger, smaller) extent.


def _positions(larger: int, smaller: int, scale: float | None) -> tuple[Any, Any]:
    """0, 1, ... and how far one step of the larger axis goes along the smaller, in torch's own precision."""
    step = np.float32(1 / scale) if scale else np.float32(smaller) / np.float32(larger)
    return np.arange(larger, dtype=np.float32), step


def _nearest_matrix(larger: int, smaller: int, scale: float | None) -> Tensor:
    places, step = _positions(larger, smaller, scale)
    chosen = np.minimum(np.floor(places * step), smaller - 1)
    return torch.tensor((chosen[:, None] == np.arange(smaller)).astype(np.float32).tolist())


def _bilinear_matrix(larger: int, smaller: int, scale: float | None, align_corners: bool) -> Tensor:
    places, step = _positions(larger, smaller, scale)
    if align_corners:
        source = places * np.float32((smaller - 1) / max(larger - 1, 1))
    else:
        source = np.maximum((places + np.float32(0.5)) * step - np.float32(0.5), 0)
    source = np.minimum(source, smaller - 1)
    weights = np.maximum(1 - np.abs(source[:, None] - np.arange(smaller)), 0)
    return torch.tensor(weights.astype(np.float32).tolist())


def _between(rows: Tensor, image: Tensor, columns: Tensor) -> Tensor:
    return torch.matmul(torch.matmul(rows, image), columns)


def _bilinear(
    image: Tensor,
    output_size: Sequence[int],
    align_corners: bool,
    scales_h: float | None = None,
    scales_w: float | None = None,
) -> Tensor:
    rows = _bilinear_matrix(output_size[0], image.shape[-2], scales_h, align_corners)
    columns = _bilinear_matrix(output_size[1], image.shape[-1], scales_w, align_corners)
    return _between(rows, image, columns.t())


def _bilinear_backward(
    gradient: Tensor,
    output_size: Sequence[int],
    input_size: Sequence[int],
    align_corners: bool,
    scales_h: float | None = None,
    scales_w: float | None = None,
) -> Tensor:
    rows = _bilinear_matrix(output_size[0], input_size[2], scales_h, align_corners)
    columns = _bilinear_matrix(output_size[1], input_size[3], scales_w, align_corners)
    return _between(rows.t(), gradient, columns)


def _nearest_backward(
    gradient: Tensor,
    output_size: Sequence[int],
    input_size: Sequence[int],
    scales_h: float | None = None,
    scales_w: float | None = None,
) -> Tensor:
    rows = _nearest_matrix(output_size[0], input_size[2], scales_h)
    columns = _nearest_matrix(output_size[1], input_size[3], scales_w)
    return _between(rows.t(), gradient, columns)


def _nearest_backward_1d(
    gradient: Tensor, output_size: Sequence[int], input_size: Sequence[int], scales: float | None = None
) -> Tensor:
    return torch.matmul(gradient, _nearest_matrix(output_size[0], input_size[2], scales))


def _even_windows(extents: Sequence[int], counts: Sequence[int]) -> list[int]:
    if any(extent % count for extent, count in zip(extents, counts, strict=True)):
        raise UnsupportedOp(
            f"Adaptive max pooling from {list(extents)} to {list(counts)} has windows of different sizes, which "
            "cannot be captured; choose sizes that divide the image, or use adaptive average pooling."
        )
    return [extent // count for extent, count in zip(extents, counts, strict=True)]


def _adaptive_max_pool(x: Tensor, output_size: Sequence[int]) -> tuple[Tensor, Tensor]:
    kernel = _even_windows(x.shape[-2:], output_size)
    pooled: tuple[Tensor, Tensor] = aten.max_pool2d_with_indices(x, kernel, kernel, [0, 0], [1, 1], False)
    return pooled


def _adaptive_max_pool_backward(gradient: Tensor, x: Tensor, indices: Tensor) -> Tensor:
    kernel = _even_windows(x.shape[-2:], gradient.shape[-2:])
    result: Tensor = aten.max_pool2d_with_indices_backward(
        gradient, x, kernel, kernel, [0, 0], [1, 1], False, indices
    )
    return result
