"""Operations that combine many elements into one."""

from collections.abc import Callable, Sequence
from math import prod
from typing import Final

from metal_kernels.ir.expr import Expr, Tensor, apply, cast, const, flatten, unflatten, where
from metal_kernels.ir.loops import Combine, neutral
from metal_kernels.ir.scalars import Scalar
from metal_kernels.lowering.context import Call, Rule, Source


def _kept(shape: Sequence[int], dims: Sequence[int]) -> tuple[int, ...]:
    return tuple(extent for axis, extent in enumerate(shape) if axis not in dims)


def _without(at: Sequence[Expr], dims: Sequence[int]) -> list[Expr]:
    return [index for axis, index in enumerate(at) if axis not in dims]


def _dims(call: Call) -> list[int]:
    dim = call["dim"]
    return list(dim) if isinstance(dim, list) else [dim]


def _simple(combine: Combine, body: Callable[[Expr], Expr] = lambda x: x) -> Rule:
    """A reduction whose result needs no more work; `keepdim` only changes its shape."""

    def rule(call: Call) -> None:
        source, output = call.source("self"), call.output()
        call.require(output.dtype != "bool", "combines truth values")
        rank = len(source.shape)
        call.define_reduce(
            output, source.shape, _dims(call) if rank else [], combine,
            lambda *at: body(cast(source.at(*at), output.dtype)),
        )  # fmt: skip

    return rule


def _mean(call: Call) -> None:
    source = call.source("self")
    count = prod(source.shape[dim] for dim in _dims(call)) if source.shape else 1
    total = _partial(call, source, _dims(call), "sum", lambda *at: source.at(*at))
    _shaped(call, call.output(), total, lambda x: x / count)


def _partial(
    call: Call, source: Source, dims: Sequence[int], combine: Combine, body: Callable[..., Expr]
) -> Source:
    """A reduction of `body` over the source's shape into a scratch tensor without the reduced dimensions."""
    dims = dims if source.shape else []
    return call.define_reduce(call.temporary(_kept(source.shape, dims)), source.shape, dims, combine, body)


def _shaped(call: Call, output: Tensor, total: Source, body: Callable[[Expr], Expr]) -> Source:
    """`body` of each total, in the output's shape (with or without the reduced dimensions of size one)."""
    return call.define_map(
        output, lambda *at: body(total.at(*unflatten(flatten(at, output.shape), total.shape)))
    )


def _variance(call: Call, source: Source, dims: list[int]) -> tuple[Source, Source, float]:
    """The mean and the sum of squared distances from it, in two passes: one pass would cancel digits."""
    count = prod(source.shape[dim] for dim in dims) if source.shape else 1
    total = _partial(call, source, dims, "sum", lambda *at: source.at(*at))
    mean = call.define_map(call.temporary(total.shape), lambda *at: total.at(*at) / count)

    def square(*at: Expr) -> Expr:
        distance = source.at(*at) - mean.at(*_without(at, dims))
        return distance * distance

    squares = _partial(call, source, dims, "sum", square)
    correction = 1.0 if call["correction"] is None else call.number("correction")
    return mean, squares, max(count - correction, 0)


def _var_mean(call: Call) -> None:
    source = call.source("self")
    dims = list(range(len(source.shape))) if not call["dim"] else _dims(call)
    mean, squares, degrees = _variance(call, source, dims)
    if call.wants(0):
        _shaped(call, call.output(0), squares, lambda x: x / degrees)
    if len(call.node.outputs) > 1 and call.wants(1):
        _shaped(call, call.output(1), mean, lambda x: x)


def _softmax(call: Call) -> None:
    source, dim = call.source("self"), call["dim"]
    largest, total = _exponentials(call, source, dim)
    call.define_map(
        call.output(),
        lambda *at: (
            apply("exp", source.at(*at) - largest.at(*_without(at, [dim]))) / total.at(*_without(at, [dim]))
        ),
    )


def _log_softmax(call: Call) -> None:
    source, dim = call.source("self"), call["dim"]
    largest, total = _exponentials(call, source, dim)

    def body(*at: Expr) -> Expr:
        rest = _without(at, [dim])
        return source.at(*at) - largest.at(*rest) - apply("log", total.at(*rest))

    call.define_map(call.output(), body)


def _exponentials(call: Call, source: Source, dim: int) -> tuple[Source, Source]:
    """The largest element and the sum of exp(x - largest), by row."""
    call.require(bool(source.shape), "works on a single number")
    largest = _partial(call, source, [dim], "max", lambda *at: source.at(*at))
    total = _partial(
        call,
        source,
        [dim],
        "sum",
        lambda *at: apply("exp", source.at(*at) - largest.at(*_without(at, [dim]))),
    )
    return largest, total


def _arg(combine: Combine) -> Rule:
    """The first index of the largest or smallest element."""

    def rule(call: Call) -> None:
        _extreme(call, combine, call.source("self"), None, call.output())

    return rule


def _extreme_with_index(combine: Combine) -> Rule:
    def rule(call: Call) -> None:
        values = call.output(0) if call.wants(0) else None
        _extreme(call, combine, call.source("self"), values, call.output(1) if call.wants(1) else None)

    return rule


def _extreme(
    call: Call, combine: Combine, source: Source, values: Tensor | None, indices: Tensor | None
) -> None:
    call.require(bool(source.shape), "works on a single number")
    dim = call["dim"]
    dims = list(range(len(source.shape))) if dim is None else [dim]
    dtype: Scalar = "i32" if source.dtype == "bool" else source.dtype

    def value(*at: Expr) -> Expr:
        return cast(source.at(*at), dtype)

    best = call.define_reduce(
        call.temporary(_kept(source.shape, dims), dtype), source.shape, dims, combine, value
    )
    if values is not None:
        _shaped(call, values, best, lambda x: cast(x, values.dtype))
    if indices is not None:
        beyond = const(source.tensor.elements, "i32")

        def place(*at: Expr) -> Expr:
            here = flatten([at[axis] for axis in dims], tuple(source.shape[axis] for axis in dims))
            return where(value(*at).equals(best.at(*_without(at, dims))), here, beyond)

        call.define_reduce(indices, source.shape, dims, "min", place)


def _cumulative(combine: Combine) -> Rule:
    """Each element combines those up to it; meant for short rows, such as positions."""

    def rule(call: Call) -> None:
        source, output, dim = call.source("self"), call.output(), call["dim"]
        call.require(bool(source.shape), "works on a single number")
        length = source.shape[dim]

        def body(*at: Expr) -> Expr:
            upto, place = at[-1], at[dim]
            value = cast(source.at(*at[:dim], upto, *at[dim + 1 : -1]), output.dtype)
            return where(upto <= place, value, const(neutral(combine, output.dtype), output.dtype))

        call.define_reduce(output, (*source.shape, length), [len(source.shape)], combine, body)

    return rule


def _any(call: Call) -> None:
    source, output = call.source("self"), call.output()
    dims = _dims(call) if source.shape else []
    found = call.define_reduce(
        call.temporary(_kept(source.shape, dims), "i32"), source.shape, dims, "max",
        lambda *at: cast(cast(source.at(*at), "bool"), "i32"),
    )  # fmt: skip
    _shaped(call, output, found, lambda x: cast(x, "bool"))


RULES: Final[dict[str, Rule]] = {
    "aten.sum.dim_IntList": _simple("sum"),
    "aten.amax.default": _simple("max"),
    "aten.amin.default": _simple("min"),
    "aten.prod.dim_int": _simple("prod"),
    "aten.any.dim": _any,
    "aten.mean.dim": _mean,
    "aten.var.correction": _var_mean,
    "aten.var_mean.correction": _var_mean,
    "aten._softmax.default": _softmax,
    "aten._log_softmax.default": _log_softmax,
    "aten.argmax.default": _arg("max"),
    "aten.argmin.default": _arg("min"),
    "aten.max.dim": _extreme_with_index("max"),
    "aten.min.dim": _extreme_with_index("min"),
    "aten.cumsum.default": _cumulative("sum"),
    "aten.cumprod.default": _cumulative("prod"),
}
