"""Loop nests over whole tensors: what each value of a program is, before anything says how it is computed.

Three kinds suffice. A `Map` gives each element by itself; every pointwise operation, view, gather and padding is one.
A `Reduce` combines a part of its domain's axes. A `Contract` is a sum of products, the shape of every matrix product
and convolution: the operands are expressions, so a transposed, padded or gathered operand needs no copy.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, Literal, TypeAlias

from metal_kernels.ir.expr import Expr, Tensor, flatten, index_var, reads
from metal_kernels.ir.scalars import FLOAT_MAX, Scalar

Combine: TypeAlias = Literal["sum", "max", "min", "prod"]

COMBINE_OPS: Final[dict[Combine, str]] = {"sum": "add", "max": "max", "min": "min", "prod": "mul"}


def neutral(combine: Combine, dtype: Scalar) -> float:
    """What combining leaves unchanged."""
    largest = FLOAT_MAX if dtype == "f32" else 2**31 - 1
    return {"sum": 0, "prod": 1, "max": -largest, "min": largest}[combine]


@dataclass(frozen=True)
class Map:
    """`tensor[axes] = body`."""

    tensor: Tensor
    axes: tuple[Expr, ...]
    body: Expr


@dataclass(frozen=True)
class Reduce:
    """`tensor[kept axes] = combine(body)` over the axes of `domain` at the positions `reduced`."""

    tensor: Tensor
    domain: tuple[Expr, ...]
    extents: tuple[int, ...]
    reduced: tuple[int, ...]
    combine: Combine
    body: Expr


@dataclass(frozen=True)
class Contract:
    """`tensor[b, m, n] = sum over k of left(b, m, k) * right(b, k, n)`; the tensor has its elements in this order.

    `terms` and `columns` are the shapes that the operands take k and n apart into: the taps of a window, the places
    of an image. Tiles that keep to them need no division, and neighbouring windows share what they read.
    """

    tensor: Tensor
    extents: tuple[int, int, int, int]
    left: Expr
    right: Expr
    terms: tuple[int, ...] = ()
    columns: tuple[int, ...] = ()


Definition: TypeAlias = Map | Reduce | Contract

CONTRACT_AXES: Final = ("b", "m", "n", "k")


def axes_of(shape: Iterable[int], prefix: str = "i") -> tuple[Expr, ...]:
    return tuple(index_var(f"{prefix}{position}", extent) for position, extent in enumerate(shape))


def contract_axes(extents: tuple[int, int, int, int]) -> tuple[Expr, Expr, Expr, Expr]:
    b, m, n, k = (index_var(name, extent) for name, extent in zip(CONTRACT_AXES, extents, strict=True))
    return b, m, n, k


def binding(axes: Iterable[Expr], indices: Iterable[Expr]) -> dict[Expr, Expr]:
    """The replacements that put `indices` in place of `axes`. An axis of extent one is no variable."""
    return {axis: index for axis, index in zip(axes, indices, strict=True) if axis.op == "var"}


def extents_of(definition: Definition) -> tuple[int, ...]:
    """The extents of the elements it gives, in order."""
    if isinstance(definition, Map):
        return tuple(axis.high + 1 if axis.op == "var" else 1 for axis in definition.axes)
    return definition.tensor.shape


def bodies(definition: Definition) -> tuple[Expr, ...]:
    return (definition.left, definition.right) if isinstance(definition, Contract) else (definition.body,)


@lru_cache(maxsize=2**14)
def sources(definition: Definition) -> frozenset[Tensor]:
    """The tensors it reads."""
    return frozenset(node.value for node in reads(*bodies(definition)))


def flat_read(node: Expr) -> Expr:
    """The flat index of a `read`."""
    return flatten(node.args, node.value.shape)


@dataclass
class LoopProgram:
    """A program as definitions in order of dependence.

    `inputs` are given, `outputs` are kept; everything else is scratch. `updates` pairs the state that an output
    replaces with the output: the two may share memory. `results` are the outputs that are read back, by key.
    """

    definitions: list[Definition]
    inputs: dict[str, Tensor]
    outputs: dict[str, Tensor]
    updates: Mapping[str, str] = field(default_factory=dict)
    results: dict[str, str] = field(default_factory=dict)
