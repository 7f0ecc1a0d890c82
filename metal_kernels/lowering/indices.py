"""Indices that come from data: kept inside, and how those of advanced indexing lie in a result."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from metal_kernels.ir.expr import Expr, clamp, flatten, unflatten, where
from metal_kernels.lowering.context import Call, Source


def clamped_index(index: Expr, extent: int) -> Expr:
    """An index from data, kept inside; data sets are checked when they arrive, so it changes nothing there."""
    return clamp(where(index < 0, index + extent, index), 0, extent - 1)


@dataclass(frozen=True)
class IndexedDims:
    """Advanced indexing of a tensor: integer tensors at the dimensions `at`, broadcast to one shape of rows.

    In the result, the rows' dimensions stand where the indexed ones stood; first, if those are apart.
    """

    tensors: tuple[Source, ...]
    at: tuple[int, ...]
    shape: tuple[int, ...]
    row_shape: tuple[int, ...]

    @classmethod
    def of(cls, call: Call, source: Source) -> "IndexedDims":
        given = list(call["indices"])
        tensors = tuple(call.referred(ref) for ref in given if ref is not None)
        call.require(all(tensor.dtype == "i32" for tensor in tensors), "indexes by a mask")
        rank = max(len(tensor.shape) for tensor in tensors)
        row_shape = tuple(
            max(tensor.shape[axis - rank] for tensor in tensors if len(tensor.shape) >= rank - axis)
            for axis in range(rank)
        )
        at = tuple(position for position, ref in enumerate(given) if ref is not None)
        return cls(tensors, at, source.shape, row_shape)

    @property
    def places(self) -> int:
        return prod(self.shape[axis] for axis in self.at)

    @property
    def rows(self) -> int:
        return prod(self.row_shape)

    @property
    def kept(self) -> tuple[int, ...]:
        """The dimensions that are not indexed."""
        return tuple(axis for axis in range(len(self.shape)) if axis not in self.at)

    @property
    def width(self) -> int:
        return prod(self.shape[axis] for axis in self.kept)

    @property
    def _start(self) -> int:
        """Where the rows' dimensions begin in the result."""
        return self.at[0] if self.at == tuple(range(self.at[0], self.at[-1] + 1)) else 0

    def chosen(self, row_at: Sequence[Expr]) -> list[Expr]:
        """The indices of one row, one for each dimension of `at`."""
        return [
            clamped_index(tensor.broadcast(row_at), self.shape[axis])
            for tensor, axis in zip(self.tensors, self.at, strict=True)
        ]

    def source_at(self, result_at: Sequence[Expr]) -> list[Expr]:
        """Where an element of the result lies in the indexed tensor."""
        start, stop = self._start, self._start + len(self.row_shape)
        kept = dict(zip(self.kept, [*result_at[:start], *result_at[stop:]], strict=True))
        chosen = dict(zip(self.at, self.chosen(result_at[start:stop]), strict=True))
        return [(kept | chosen)[axis] for axis in range(len(self.shape))]

    def key(self, row: Expr) -> Expr:
        """Which of the places a row names."""
        extents = tuple(self.shape[axis] for axis in self.at)
        return flatten(self.chosen(unflatten(row, self.row_shape)), extents)

    def result_at(self, row: Expr, column: Expr) -> list[Expr]:
        """Where an element of a row lies in the result. A column counts the elements of the kept dimensions."""
        kept = list(unflatten(column, tuple(self.shape[axis] for axis in self.kept)))
        return [*kept[: self._start], *unflatten(row, self.row_shape), *kept[self._start :]]

    def place_and_column(self, at: Sequence[Expr]) -> tuple[Expr, Expr]:
        """The place and the column of an element of the indexed tensor."""
        place = flatten([at[axis] for axis in self.at], tuple(self.shape[axis] for axis in self.at))
        column = flatten([at[axis] for axis in self.kept], tuple(self.shape[axis] for axis in self.kept))
        return place, column
