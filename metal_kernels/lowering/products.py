"""Matrix products and convolutions: each is one sum of products whose operands are read where they lie."""

from dataclasses import dataclass
from math import prod
from typing import Final

from metal_kernels.ir.expr import Expr, Tensor, clamp, unflatten, where
from metal_kernels.lowering.context import Call, Rule, Source


def _mm(call: Call) -> None:
    a, b = call.source("self"), call.source("mat2")
    extents = (1, a.shape[0], b.shape[1], a.shape[1])
    call.define_contract(call.output(), extents, lambda _, m, k: a.at(m, k), lambda _, k, n: b.at(k, n))


def _bmm(call: Call) -> None:
    a, b = call.source("self"), call.source("mat2")
    extents = (a.shape[0], a.shape[1], b.shape[2], a.shape[2])
    call.define_contract(call.output(), extents, a.at, b.at)


def _addmm(call: Call) -> None:
    bias, a, b = (call.source(name) for name in ("self", "mat1", "mat2"))
    extents = (1, a.shape[0], b.shape[1], a.shape[1])
    product = call.define_contract(
        call.temporary(call.output().shape), extents, lambda _, m, k: a.at(m, k), lambda _, k, n: b.at(k, n)
    )
    alpha, beta = call["alpha"], call["beta"]
    call.define_map(call.output(), lambda *at: product.at(*at) * alpha + bias.broadcast(at) * beta)


@dataclass(frozen=True)
class _Geometry:
    """How the windows of a convolution lie. One-dimensional data is an image of height one."""

    stride: tuple[int, int]
    padding: tuple[int, int]
    dilation: tuple[int, int]
    groups: int

    @classmethod
    def of(cls, call: Call) -> "_Geometry":
        def pair(name: str, filler: int) -> tuple[int, int]:
            given = list(call[name])
            call.require(len(given) in (1, 2), "has three dimensions")
            first, second = given if len(given) == 2 else [filler, *given]
            return first, second

        return cls(pair("stride", 1), pair("padding", 0), pair("dilation", 1), call["groups"])

    def source_place(self, out: Expr, tap: Expr, axis: int) -> Expr:
        """Where tap `tap` of the window at `out` reads. It may lie outside, in the padding."""
        return out * self.stride[axis] + tap * self.dilation[axis] - self.padding[axis]


class _Image:
    """A batch of images, read by (batch, channel, row, column) whether it has one or two dimensions."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.flat = len(source.shape) == 3
        shape = source.shape
        self.batch, self.channels = shape[0], shape[1]
        self.size = (1, shape[2]) if self.flat else (shape[2], shape[3])

    def padded(self, b: Expr, c: Expr, y: Expr, x: Expr) -> Expr:
        return self.source.padded(b, c, x) if self.flat else self.source.padded(b, c, y, x)

    def at(self, b: Expr, c: Expr, y: Expr, x: Expr) -> Expr:
        return self.source.at(b, c, x) if self.flat else self.source.at(b, c, y, x)


def _convolution(call: Call) -> None:
    """A transposed convolution is what gives an ordinary one's input gradient."""
    image, weight = _Image(call.source("input")), _Image(call.source("weight"))
    geometry, bias, output = _Geometry.of(call), call.optional("bias"), call.output()
    product = output if bias is None else call.temporary(output.shape)
    whole = (_covering_windows if call["transposed"] else _windows)(call, product, geometry, image, weight)
    if bias is not None:
        call.define_map(output, lambda *at: whole.at(*at) + bias.at(at[1]))


def _windows(call: Call, result: Tensor, geometry: _Geometry, image: _Image, weight: _Image) -> Source:
    """out[b, co, p] = sum over (ci, ky, kx) of weight[co, ci, ky, kx] * image[b, ci, place(p, ky, kx)]."""
    groups, taps = geometry.groups, weight.size
    out_size = _Image(Source(result)).size
    per_group = weight.batch // groups
    window = (weight.channels, *taps)

    def kernel(b: Expr, m: Expr, k: Expr) -> Expr:
        ci, ky, kx = unflatten(k, window)
        return weight.at((b % groups) * per_group + m, ci, ky, kx)

    def patch(b: Expr, k: Expr, n: Expr) -> Expr:
        (ci, ky, kx), (oy, ox) = unflatten(k, window), unflatten(n, out_size)
        y, x = geometry.source_place(oy, ky, 0), geometry.source_place(ox, kx, 1)
        return image.padded(b // groups, (b % groups) * weight.channels + ci, y, x)

    extents = (image.batch * groups, per_group, prod(out_size), prod(window))
    return call.define_contract(result, extents, kernel, patch, terms=window, columns=out_size)


def _convolution_backward(call: Call) -> None:
    gradient, image, weight = (_Image(call.source(name)) for name in ("grad_output", "input", "weight"))
    geometry, transposed = _Geometry.of(call), call["transposed"]
    if call.wants(0):
        (_windows if transposed else _covering_windows)(call, call.output(0), geometry, gradient, weight)
    if call.wants(1):
        outer, inner = (image, gradient) if transposed else (gradient, image)
        _weight_gradient(call, geometry, outer, inner, weight)
    if call.wants(2):
        source = gradient.source
        kept = [axis for axis in range(len(source.shape)) if axis != 1]
        call.define_reduce(call.output(2), source.shape, kept, "sum", source.at)


def _covering_windows(
    call: Call, result: Tensor, geometry: _Geometry, windows: _Image, weight: _Image
) -> Source:
    """Each pixel gathers from the windows that cover it: no scatter, no atomics."""
    groups, taps = geometry.groups, weight.size
    size = _Image(Source(result)).size
    per_group = weight.batch // groups
    window = (per_group, *taps)

    def kernel(b: Expr, m: Expr, k: Expr) -> Expr:
        co, ky, kx = unflatten(k, window)
        return weight.at((b % groups) * per_group + co, m, ky, kx)

    def covering(b: Expr, k: Expr, n: Expr) -> Expr:
        (co, ky, kx), (y, x) = unflatten(k, window), unflatten(n, size)
        rows, inside_y = _window_over(geometry, y, ky, 0, windows.size[0])
        columns, inside_x = _window_over(geometry, x, kx, 1, windows.size[1])
        value = windows.at(b // groups, (b % groups) * per_group + co, rows, columns)
        return where(inside_y & inside_x, value, 0.0)

    extents = (windows.batch * groups, weight.channels, prod(size), prod(window))
    return call.define_contract(result, extents, kernel, covering, terms=window, columns=size)


def _window_over(geometry: _Geometry, place: Expr, tap: Expr, axis: int, extent: int) -> tuple[Expr, Expr]:
    """The window whose tap `tap` covers `place`, clamped inside, and whether there is one."""
    stride, offset = geometry.stride[axis], place + geometry.padding[axis] - tap * geometry.dilation[axis]
    whole = clamp(offset, 0, stride * extent)
    inside = (offset >= 0) & (whole // stride < extent) & (whole % stride).equals(0)
    return clamp(whole // stride, 0, extent - 1), inside


def _weight_gradient(
    call: Call, geometry: _Geometry, gradient: _Image, image: _Image, weight: _Image
) -> None:
    """dw[co, (ci, ky, kx)] = sum over (batch, pixel) of gradient * image."""
    groups, taps = geometry.groups, weight.size
    per_group = weight.batch // groups
    window = (weight.channels, *taps)
    pixels = (image.batch, *gradient.size)

    def left(g: Expr, m: Expr, k: Expr) -> Expr:
        b, oy, ox = unflatten(k, pixels)
        return gradient.at(b, g * per_group + m, oy, ox)

    def right(g: Expr, k: Expr, n: Expr) -> Expr:
        (b, oy, ox), (ci, ky, kx) = unflatten(k, pixels), unflatten(n, window)
        y, x = geometry.source_place(oy, ky, 0), geometry.source_place(ox, kx, 1)
        return image.padded(b, g * weight.channels + ci, y, x)

    extents = (groups, per_group, prod(window), prod(pixels))
    call.define_contract(call.output(1), extents, left, right, terms=pixels, columns=window)


RULES: Final[dict[str, Rule]] = {
    "aten.mm.default": _mm,
    "aten.bmm.default": _bmm,
    "aten.addmm.default": _addmm,
    "aten.convolution.default": _convolution,
    "aten.convolution_backward.default": _convolution_backward,
}
