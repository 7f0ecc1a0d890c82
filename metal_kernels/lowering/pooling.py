"""Pooling. Each axis of an image is cut into windows; both directions gather, so nothing needs an atomic add."""

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from typing import Final, TypeAlias

from metal_kernels.ir.expr import Expr, apply, cast, clamp, const, where
from metal_kernels.ir.scalars import FLOAT_MAX
from metal_kernels.lowering.context import Call, Rule, Source


@dataclass(frozen=True)
class _Windows:
    """The windows along one axis: of window `o`, taps `start(o) <= place < stop(o)` that lie inside the axis.

    `candidate(place, j)` for `j < covers` are the windows that may cover a place.
    """

    extent: int
    count: int
    longest: int
    covers: int
    start: Callable[[Expr], Expr]
    stop: Callable[[Expr], Expr]
    candidate: Callable[[Expr, Expr], Expr]


def _sliding(extent: int, count: int, kernel: int, stride: int, padding: int, dilation: int = 1) -> _Windows:
    reach = (kernel - 1) * dilation + 1
    return _Windows(
        extent, count, kernel, ceil(reach / stride),
        start=lambda o: o * stride - padding,
        stop=lambda o: o * stride - padding + reach,
        candidate=lambda place, j: (place + padding) // stride - j,
    )  # fmt: skip


def _adaptive(extent: int, count: int) -> _Windows:
    """`count` windows that together cover the axis, of lengths that differ by one at most."""
    return _Windows(
        extent, count, ceil(extent / count) + (extent % count != 0), count // extent + 2,
        start=lambda o: o * extent // count,
        stop=lambda o: (o * extent + extent + count - 1) // count,
        candidate=lambda place, j: place * count // extent + j,
    )  # fmt: skip


_Axes: TypeAlias = tuple[_Windows, _Windows]


def _leading(source: Source, at: tuple[Expr, ...]) -> tuple[Expr, ...]:
    return at[: len(source.shape) - 2]


def _both(rows: Expr, columns: Expr) -> Expr:
    return rows & columns


def _max_pool(call: Call) -> None:
    """The largest element of each window, and where it lies in the image: the first such place."""
    source = call.source("self")
    height, width = source.shape[-2:]
    out_shape = next(value.shape for value in call.node.outputs if value is not None)
    stride, padding, dilation = call["stride"], call["padding"], call["dilation"]
    domain = (*out_shape, *call["kernel_size"])
    taps = [len(out_shape), len(out_shape) + 1]

    def place(at: tuple[Expr, ...], axis: int) -> Expr:
        first: Expr = at[axis - 4] * stride[axis] - padding[axis]
        tap: Expr = at[axis - 2] * dilation[axis]
        return first + tap

    def value(*at: Expr) -> Expr:
        return source.padded(*_leading(source, at), place(at, 0), place(at, 1), fill=-FLOAT_MAX)

    best = call.output(0) if call.wants(0) else call.temporary(out_shape)
    largest = call.define_reduce(best, domain, taps, "max", value)
    if not call.wants(1):
        return
    beyond = const(height * width, "i32")

    def first_place(*at: Expr) -> Expr:
        y, x = place(at, 0), place(at, 1)
        inside = (y >= 0) & (y < height) & (x >= 0) & (x < width)
        return where(inside & value(*at).equals(largest.at(*at[:-2])), y * width + x, beyond)

    call.define_reduce(call.output(1), domain, taps, "min", first_place)


def _max_pool_backward(call: Call) -> None:
    """A pixel takes the gradients of the windows whose largest element it is."""
    gradient, indices, source = call.source("grad_output"), call.source("indices"), call.source("self")
    axes = [
        _sliding(source.shape[axis - 2], gradient.shape[axis - 2], *(
            call[name][axis] for name in ("kernel_size", "stride", "padding", "dilation")
        ))
        for axis in (0, 1)
    ]  # fmt: skip

    def body(*at: Expr) -> Expr:
        y, x = at[-4], at[-3]
        rows, columns = axes[0].candidate(y, at[-2]), axes[1].candidate(x, at[-1])
        window = (*_leading(source, at[:-2]), _inside(rows, axes[0]), _inside(columns, axes[1]))
        mine = indices.at(*window).equals(y * source.shape[-1] + x)
        return where(
            _both(_exists(rows, axes[0]), _exists(columns, axes[1])) & mine, gradient.at(*window), 0.0
        )

    rank = len(source.shape)
    domain = (*source.shape, axes[0].covers, axes[1].covers)
    call.define_reduce(call.output(), domain, [rank, rank + 1], "sum", body)


def _inside(window: Expr, axis: _Windows) -> Expr:
    return clamp(window, 0, axis.count - 1)


def _exists(window: Expr, axis: _Windows) -> Expr:
    return (window >= 0) & (window < axis.count)


def _average(call: Call, source: Source, axes: _Axes, divisor: Callable[[Expr, Expr], Expr]) -> None:
    """The sum of each window over its divisor."""
    output = call.output()
    rank = len(output.shape)
    domain = (*output.shape, axes[0].longest, axes[1].longest)

    def body(*at: Expr) -> Expr:
        y, x = axes[0].start(at[-4]) + at[-2], axes[1].start(at[-3]) + at[-1]
        value = source.padded(*_leading(source, at[:-2]), y, x)
        return where((y < axes[0].stop(at[-4])) & (x < axes[1].stop(at[-3])), value, 0.0)

    total = call.define_reduce(call.temporary(output.shape), domain, [rank, rank + 1], "sum", body)
    call.define_map(output, lambda *at: total.at(*at) / divisor(at[-2], at[-1]))


def _average_backward(call: Call, source: Source, axes: _Axes, divisor: Callable[[Expr, Expr], Expr]) -> None:
    """A pixel takes its share of the gradient of each window that covers it."""
    gradient = call.source("grad_output")
    rank = len(source.shape)
    domain = (*source.shape, axes[0].covers, axes[1].covers)

    def body(*at: Expr) -> Expr:
        windows = [axes[axis].candidate(at[axis - 4], at[axis - 2]) for axis in (0, 1)]
        rows, columns = (_inside(window, axis) for window, axis in zip(windows, axes, strict=True))
        covered = _both(_exists(windows[0], axes[0]), _exists(windows[1], axes[1]))
        for place, window, axis in zip(at[-4:-2], (rows, columns), axes, strict=True):
            covered = covered & (axis.start(window) <= place) & (place < axis.stop(window))
        share = gradient.at(*_leading(source, at[:-2]), rows, columns) / divisor(rows, columns)
        return where(covered, share, 0.0)

    call.define_reduce(call.output(), domain, [rank, rank + 1], "sum", body)


def _sliding_axes(call: Call, source: Source, out_shape: tuple[int, ...]) -> _Axes:
    kernel, stride, padding = (call[name] for name in ("kernel_size", "stride", "padding"))
    rows, columns = (
        _sliding(source.shape[axis - 2], out_shape[axis - 2], kernel[axis], stride[axis], padding[axis])
        for axis in (0, 1)
    )
    return rows, columns


def _pool_divisor(call: Call, axes: _Axes) -> Callable[[Expr, Expr], Expr]:
    """How many elements a window counts: with its padding or without, as asked."""
    if call["divisor_override"] is not None:
        return lambda rows, columns: const(call["divisor_override"], "f32")
    paddings = call["padding"] if call["count_include_pad"] else (0, 0)

    def length(window: Expr, axis: _Windows, padding: int) -> Expr:
        last = apply("min", axis.stop(window), const(axis.extent + padding, "i32"))
        return last - apply("max", axis.start(window), const(-padding, "i32"))

    def divisor(rows: Expr, columns: Expr) -> Expr:
        return cast(length(rows, axes[0], paddings[0]), "f32") * cast(
            length(columns, axes[1], paddings[1]), "f32"
        )

    return divisor


def _avg_pool(call: Call) -> None:
    source = call.source("self")
    axes = _sliding_axes(call, source, call.output().shape)
    _average(call, source, axes, _pool_divisor(call, axes))


def _avg_pool_backward(call: Call) -> None:
    source = call.source("self")
    axes = _sliding_axes(call, source, call.source("grad_output").shape)
    _average_backward(call, source, axes, _pool_divisor(call, axes))


def _adaptive_axes(source: Source, out_shape: tuple[int, ...]) -> _Axes:
    return _adaptive(source.shape[-2], out_shape[-2]), _adaptive(source.shape[-1], out_shape[-1])


def _adaptive_divisor(axes: _Axes) -> Callable[[Expr, Expr], Expr]:
    def divisor(rows: Expr, columns: Expr) -> Expr:
        height = axes[0].stop(rows) - axes[0].start(rows)
        width = axes[1].stop(columns) - axes[1].start(columns)
        return cast(height, "f32") * cast(width, "f32")

    return divisor


def _adaptive_pool(call: Call) -> None:
    source = call.source("self")
    axes = _adaptive_axes(source, call.output().shape)
    _average(call, source, axes, _adaptive_divisor(axes))


def _adaptive_pool_backward(call: Call) -> None:
    source = call.source("self")
    axes = _adaptive_axes(source, call.source("grad_output").shape)
    _average_backward(call, source, axes, _adaptive_divisor(axes))


RULES: Final[dict[str, Rule]] = {
    "aten.max_pool2d_with_indices.default": _max_pool,
    "aten.max_pool2d_with_indices_backward.default": _max_pool_backward,
    "aten.avg_pool2d.default": _avg_pool,
    "aten.avg_pool2d_backward.default": _avg_pool_backward,
    "aten._adaptive_avg_pool2d.default": _adaptive_pool,
    "aten._adaptive_avg_pool2d_backward.default": _adaptive_pool_backward,
}
