"""Operations that write where indices say, turned round: every place gathers what was written there. No atomics, and
sums are taken in the same order on every device.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, log
from typing import Final

from metal_kernels.ir.expr import Expr, apply, cast, clamp, const, unflatten, where
from metal_kernels.lowering.context import Call, Rule, Source
from metal_kernels.lowering.indices import IndexedDims, clamped_index

RADIX: Final = 4
"""How many rows one pass adds up: a few passes suffice, and each still reads little."""

_SORT_COST: Final = 500_000
"""What the dispatches of sorting weigh, in terms of a product's sum."""
_SORTED_TERM_COST: Final = 20
"""A term that is looked up costs more than one of a tiled product (measured on lavapipe)."""


@dataclass(frozen=True)
class KeyedRows:
    """Rows of numbers, each with a key of 0 <= key < keys; a row whose key is `keys` belongs nowhere."""

    rows: int
    width: int
    keys: int
    key: Callable[[Expr], Expr]
    value: Callable[[Expr, Expr], Expr]

    @property
    def is_worth_sorting(self) -> bool:
        passes = ceil(log(max(self.rows, 2), RADIX))
        sorting = 2 * self.rows**2 + RADIX * passes * self.rows * self.width + self.keys * self.width
        return sorting * _SORTED_TERM_COST + _SORT_COST < self.keys * self.rows * self.width


def sums_by_key(call: Call, given: KeyedRows) -> Source:
    """(keys, width): for each key the sum of its rows."""
    return _sorted_sums(call, given) if given.is_worth_sorting else _one_hot_sums(call, given)


def _one_hot_sums(call: Call, given: KeyedRows) -> Source:
    """A product with a one-hot matrix that is never stored."""
    return call.define_contract(
        call.temporary((given.keys, given.width)),
        (1, given.keys, given.width, given.rows),
        lambda _, m, k: where(given.key(k).equals(m), 1.0, 0.0),
        lambda _, k, n: given.value(k, n),
    )


def _sorted_sums(call: Call, given: KeyedRows) -> Source:
    """Rows in the order of their keys, summed within each key by passes of `RADIX` rows.

    After a pass of stride s, a row holds the sum of the rows of its key among itself and the next s * RADIX - 1.
    """
    rows, width = given.rows, given.width
    key = call.define_map(call.temporary((rows,), "i32"), given.key)
    rank = call.define_reduce(
        call.temporary((rows,), "i32"), (rows, rows), [1], "sum",
        lambda i, j: cast((key.at(j) < key.at(i)) | (key.at(j).equals(key.at(i)) & (j < i)), "i32"),
    )  # fmt: skip
    place = call.define_reduce(
        call.temporary((rows,), "i32"), (rows, rows), [1], "max",
        lambda r, i: where(rank.at(i).equals(r), i, const(0, "i32")),
    )  # fmt: skip
    in_order = call.define_map(
        call.temporary((rows,), "i32"), lambda r: key.at(clamp(place.at(r), 0, rows - 1))
    )
    total = call.define_map(
        call.temporary((rows, width)), lambda r, c: given.value(clamp(place.at(r), 0, rows - 1), c)
    )
    stride = 1
    while stride < rows:
        total = _pass(call, total, in_order, stride)
        stride *= RADIX
    first = call.define_map(call.temporary((given.keys,), "i32"), lambda v: _first_at_least(in_order, v))

    def body(v: Expr, c: Expr) -> Expr:
        start = clamp(first.at(v), 0, rows - 1)
        return where((first.at(v) < rows) & in_order.at(start).equals(v), total.at(start, c), 0.0)

    return call.define_map(call.temporary((given.keys, width)), body)


def _pass(call: Call, total: Source, in_order: Source, stride: int) -> Source:
    rows, width = total.shape

    def body(r: Expr, c: Expr, turn: Expr) -> Expr:
        other = turn * stride + r
        inside = apply("min", other, const(rows - 1, "i32"))
        return where((other < rows) & in_order.at(inside).equals(in_order.at(r)), total.at(inside, c), 0.0)

    return call.define_reduce(call.temporary((rows, width)), (rows, width, RADIX), [2], "sum", body)


def _first_at_least(in_order: Source, key: Expr) -> Expr:
    """The first place of a sorted row of numbers whose number is not below `key`, by halving."""
    (rows,) = in_order.shape
    below: Expr = const(0, "i32")
    step = 1 << (rows.bit_length() - 1)
    while step:
        tried = below + step
        last = in_order.at(clamp(tried - 1, 0, rows - 1))
        below = where((tried <= rows) & (last < key), tried, below)
        step //= 2
    return below


def _embedding_backward(call: Call) -> None:
    gradient, indices = call.source("grad_output"), call.source("indices")
    call.require(not call["scale_grad_by_freq"], "scales gradients by frequency")
    keys, padding = call["num_weights"], call["padding_idx"]

    def key(row: Expr) -> Expr:
        index = clamped_index(indices.at(*unflatten(row, indices.shape)), keys)
        return where(index.equals(padding), const(keys, "i32"), index) if padding >= 0 else index

    total = sums_by_key(
        call,
        KeyedRows(
            indices.tensor.elements, gradient.shape[-1], keys, key,
            lambda row, column: gradient.at(*unflatten(row, gradient.shape[:-1]), column),
        ),
    )  # fmt: skip
    call.define_map(call.output(), total.at)


def _index_put(call: Call) -> None:
    """A copy of `self` with rows of `values` in it, or added. Of several rows for one place the last counts."""
    old, values = call.source("self"), call.source("values")
    dims = IndexedDims.of(call, old)
    keys, rows = dims.places, dims.rows

    if call["accumulate"]:
        given = KeyedRows(
            rows, dims.width, keys, dims.key,
            lambda row, column: cast(values.broadcast(dims.result_at(row, column)), "f32"),
        )  # fmt: skip
        call.require(values.dtype == "f32", "adds up integers")
        total = sums_by_key(call, given)
        call.define_map(call.output(), lambda *at: old.at(*at) + total.at(*dims.place_and_column(at)))
        return
    last = call.define_reduce(
        call.temporary((keys,), "i32"), (keys, rows), [1], "max",
        lambda place, row: where(dims.key(row).equals(place), row, const(-1, "i32")),
    )  # fmt: skip

    def body(*at: Expr) -> Expr:
        place, column = dims.place_and_column(at)
        row = last.at(place)
        new = values.broadcast(dims.result_at(clamp(row, 0, rows - 1), column))
        return where(row >= 0, new, old.at(*at))

    call.define_map(call.output(), body)


def _written(call: Call, old: Source) -> tuple[Source, Callable[[tuple[Expr, ...], Expr], Expr], int]:
    """Of a scatter along `dim`: the indices, a test whether entry `j` writes to a place, and how many there are."""
    index, dim = call.source("index"), call["dim"]
    call.require(bool(old.shape and index.shape), "works on a single number")

    def writes(at: tuple[Expr, ...], j: Expr) -> Expr:
        inside = [clamp(one, 0, extent - 1) for one, extent in zip(at, index.shape, strict=True)]
        found = clamped_index(index.at(*inside[:dim], j, *inside[dim + 1 :]), old.shape[dim]).equals(at[dim])
        for axis, (one, extent) in enumerate(zip(at, index.shape, strict=True)):
            found = found if axis == dim else found & (one < extent)
        return found

    return index, writes, index.shape[dim]


def _entry(source: Source, at: tuple[Expr, ...], dim: int, j: Expr) -> Expr:
    """The entry `j` of a scatter that may be smaller than its target."""
    inside = [clamp(one, 0, extent - 1) for one, extent in zip(at, source.shape, strict=True)]
    return source.at(*inside[:dim], j, *inside[dim + 1 :])


def _scatter(call: Call) -> None:
    """A copy of `self` with elements along `dim` replaced. Of several for one place the last counts."""
    old, dim = call.source("self"), call["dim"]
    _, writes, entries = _written(call, old)
    last = call.define_reduce(
        call.temporary(old.shape, "i32"), (*old.shape, entries), [len(old.shape)], "max",
        lambda *at: where(writes(at[:-1], at[-1]), at[-1], const(-1, "i32")),
    )  # fmt: skip

    def body(*at: Expr) -> Expr:
        j = last.at(*at)
        if "src" in call.node.args:
            new = _entry(call.source("src"), at, dim, clamp(j, 0, entries - 1))
        else:
            new = const(call.number("value"), old.dtype)
        return where(j >= 0, new, old.at(*at))

    call.define_map(call.output(), body)


def _scatter_add(call: Call) -> None:
    old, source, dim = call.source("self"), call.source("src"), call["dim"]
    _, writes, entries = _written(call, old)
    added = call.define_reduce(
        call.temporary(old.shape, old.dtype), (*old.shape, entries), [len(old.shape)], "sum",
        lambda *at: where(writes(at[:-1], at[-1]), _entry(source, at[:-1], dim, at[-1]), 0),
    )  # fmt: skip
    call.define_map(call.output(), lambda *at: old.at(*at) + added.at(*at))


RULES: Final[dict[str, Rule]] = {
    "aten.embedding_dense_backward.default": _embedding_backward,
    "aten.index_put.default": _index_put,
    "aten.scatter.src": _scatter,
    "aten.scatter.value": _scatter,
    "aten.scatter_add.default": _scatter_add,
}
