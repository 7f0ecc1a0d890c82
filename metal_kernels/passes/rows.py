"""Kernels of rows groups: element-wise work, reductions, softmax, norms.

Three ways to share the work out: a lane for each element where nothing is reduced; a lane for each row where rows
are short, or many on a processor; a workgroup for each row otherwise, whose lanes combine their parts in workgroup
memory. Rows whose part for one lane is small are unrolled, so every element is loaded once for all the passes over
the row.
"""

from dataclasses import dataclass
from math import ceil
from typing import Final

from metal_kernels.ir.expr import Expr, Tensor, apply, const, flatten, unflatten, where
from metal_kernels.ir.loops import COMBINE_OPS, Map, Reduce, binding, neutral
from metal_kernels.ir.spec import MAX_GROUPS
from metal_kernels.passes.bind import Binder, KernelDraft
from metal_kernels.passes.emit import Emitter, workgroup_combine
from metal_kernels.passes.group import Group, domain_of
from metal_kernels.passes.tiles import DeviceClass

ELEMENT_LANES: Final = 64
ROW_LANES: Final = 64
SHORT_ROW: Final = 32
"""Up to this length one lane does a whole row."""
MANY_ROWS: Final = 64
"""On a software adapter each barrier costs more than a row's work: from here on lanes do not share rows there."""
UNROLLED: Final = 8
"""The most elements of a row that one lane keeps in locals."""


@dataclass(frozen=True)
class _Shape:
    """How the work is shared out: `width` lanes for each row, `lanes` in a workgroup."""

    rows: int
    columns: int
    lanes: int
    width: int

    @classmethod
    def of(cls, group: Group, device: DeviceClass) -> "_Shape":
        rows, columns = group.rows, group.elements // max(group.rows, 1)
        if columns <= SHORT_ROW or (device == "cpu" and rows >= MANY_ROWS):
            return cls(rows, columns, ELEMENT_LANES if columns == 1 else ROW_LANES, 1)
        lanes = 32
        while lanes < 256 and lanes * 4 < columns:
            lanes *= 2
        return cls(rows, columns, lanes, lanes)

    @property
    def groups(self) -> tuple[int, int, int]:
        count = ceil(self.rows * self.width / self.lanes)
        x = min(count, MAX_GROUPS // 2 + 1)
        return (x, ceil(count / x), 1)

    @property
    def columns_per_lane(self) -> int:
        return ceil(self.columns / self.width)


def rows_kernel(group: Group, stored: list[Tensor], binder: Binder, device: DeviceClass) -> KernelDraft:
    shape = _Shape.of(group, device)
    emit = Emitter(shape.groups, shape.lanes)
    _RowsWriter(group, shape, emit, binder).write(stored)
    return KernelDraft(
        "rows" if group.reduces else "map", shape.lanes, shape.groups, tuple(emit.shared), emit.body
    )


class _RowsWriter:
    def __init__(self, group: Group, shape: _Shape, emit: Emitter, binder: Binder) -> None:
        self._group = group
        self._shape = shape
        self._emit = emit
        self._binder = binder
        self._row_values: dict[Tensor, Expr] = {}
        self._elements: dict[tuple[Tensor, Expr], Expr] = {}
        self._members = {member.tensor: member for member in group.members}
        x, y, _ = emit.group
        index = (
            y * shape.groups[0] + x
            if shape.width > 1
            else (y * shape.groups[0] + x) * shape.lanes + emit.lane
        )
        self._row_in_range = index < shape.rows
        self._row = apply("min", index, const(shape.rows - 1, "i32"))

    def write(self, stored: list[Tensor]) -> None:
        pending = [member for member in self._group.members if isinstance(member, Reduce)]
        while pending:
            self._compute_row_maps()
            ready = [member for member in pending if self._is_ready(member)]
            self._reduce(ready)
            pending = [member for member in pending if member not in ready]
        self._compute_row_maps()
        self._store_rows([tensor for tensor in stored if self._group.places[tensor] == "row"])
        self._store_full([tensor for tensor in stored if self._group.places[tensor] == "full"])

    def _is_ready(self, member: Reduce | Map) -> bool:
        """Whether all row values that it depends on are known."""
        return all(
            tensor in self._row_values
            if self._group.places[tensor] == "row"
            else self._is_ready(self._member(tensor))
            for tensor in self._binder.internal_sources(member)
        )

    def _member(self, tensor: Tensor) -> Map | Reduce:
        member = self._members[tensor]
        if not isinstance(member, Map | Reduce):
            raise TypeError(f"{tensor.name} is no part of a rows group")
        return member

    def _compute_row_maps(self) -> None:
        for member in self._group.members:
            is_row = self._group.places[member.tensor] == "row" and member.tensor not in self._row_values
            if isinstance(member, Map) and is_row and self._is_ready(member):
                at = binding_of(member, self._row)
                self._row_values[member.tensor] = self._emit.value(
                    self._binder.resolve(member.body, at, self._known)
                )

    def _known(self, tensor: Tensor, flat: Expr) -> Expr | None:
        """The value of a member: a row's is in a local, an element's is computed in place."""
        if tensor in self._row_values:
            return self._row_values[tensor]
        if tensor not in self._members:
            return None
        where = tensor, flat
        if where not in self._elements:
            member = self._member(tensor)
            self._elements[where] = self._binder.resolve(member.body, binding_of(member, flat), self._known)
        return self._elements[where]

    def _flat(self, column: Expr) -> Expr:
        """The flat index in the domain of an element of this lane's row."""
        layout = self._group.layout or ()
        extents = tuple(extent for extent, _ in layout)
        kept = iter(unflatten(self._row, tuple(extent for extent, reduced in layout if not reduced)))
        along = iter(unflatten(column, tuple(extent for extent, reduced in layout if reduced)))
        return flatten([next(along) if reduced else next(kept) for _, reduced in layout], extents)

    def _points(self) -> list[tuple[Expr, Expr]]:
        """The columns of this lane, unrolled: index, and whether there is one."""
        last = const(self._shape.columns - 1, "i32")
        points = []
        for turn in range(self._shape.columns_per_lane):
            column = (
                self._emit.lane if self._shape.width > 1 else const(0, "i32")
            ) + turn * self._shape.width
            points.append((apply("min", column, last), column < self._shape.columns))
        return points

    @property
    def _is_unrolled(self) -> bool:
        return self._shape.columns_per_lane <= UNROLLED

    def _reduce(self, ready: list[Reduce]) -> None:
        """One pass over the row for all of `ready`."""
        partials = self._unrolled_partials(ready) if self._is_unrolled else self._looped_partials(ready)
        if self._shape.width > 1:
            pairs = zip(partials, (member.combine for member in ready), strict=True)
            partials = workgroup_combine(self._emit, self._shape.lanes, pairs)
        for member, total in zip(ready, partials, strict=True):
            self._row_values[member.tensor] = total

    def _body_at(self, member: Reduce, column: Expr) -> Expr:
        return self._binder.resolve(member.body, binding_of(member, self._flat(column)), self._known)

    def _unrolled_partials(self, ready: list[Reduce]) -> list[Expr]:
        roots = []
        for member in ready:
            total: Expr | None = None
            for column, exists in self._points():
                value = where(
                    exists, self._body_at(member, column), neutral(member.combine, member.tensor.dtype)
                )
                total = value if total is None else apply(COMBINE_OPS[member.combine], total, value)
            roots.append(total)
        return [
            self._emit.let(value) for value in self._emit.values([root for root in roots if root is not None])
        ]

    def _looped_partials(self, ready: list[Reduce]) -> list[Expr]:
        emit = self._emit
        totals = [
            emit.declare(
                member.tensor.dtype, const(neutral(member.combine, member.tensor.dtype), member.tensor.dtype)
            )
            for member in ready
        ]
        column = self._open_columns()
        values = emit.values([self._body_at(member, column) for member in ready])
        for member, total, value in zip(ready, totals, values, strict=True):
            emit.assign(total, apply(COMBINE_OPS[member.combine], total, value))
        self._close_columns(column)
        return [emit.let(total) for total in totals]

    def _open_columns(self) -> Expr:
        column = self._emit.loop_var(self._shape.columns)
        self._emit.open(column)
        return column

    def _close_columns(self, column: Expr) -> None:
        start = self._emit.lane if self._shape.width > 1 else const(0, "i32")
        stop = const(self._shape.columns, "i32")
        self._emit.close_for(column, apply("min", start, stop), stop, self._shape.width)

    def _store_rows(self, tensors: list[Tensor]) -> None:
        if not tensors:
            return
        in_charge = self._row_in_range
        if self._shape.width > 1:
            in_charge = in_charge & self._emit.lane.equals(0)
        self._store_if(in_charge, tensors, [self._row_values[tensor] for tensor in tensors], self._row)

    def _store_full(self, tensors: list[Tensor]) -> None:
        if not tensors:
            return
        if self._is_unrolled:
            for column, exists in self._points():
                self._store_column(tensors, column, self._row_in_range & exists)
        else:
            column = self._open_columns()
            self._store_column(tensors, column, self._row_in_range)
            self._close_columns(column)

    def _store_column(self, tensors: list[Tensor], column: Expr, exists: Expr) -> None:
        flat = self._flat(column)
        values = [self._known(tensor, flat) for tensor in tensors]
        self._store_if(
            exists, tensors, self._emit.values([value for value in values if value is not None]), flat
        )

    def _store_if(self, condition: Expr, tensors: list[Tensor], values: list[Expr], flat: Expr) -> None:
        """Values first, then stores: a value may read what a store replaces."""
        if condition.is_const and not condition.value:
            return
        if not condition.is_const:
            self._emit.open()
        for tensor, value in zip(tensors, values, strict=True):
            index = self._binder.store_index(self._members[tensor], flat)
            self._emit.store(*self._binder.stored(tensor, self._emit.value(index), value))
        if not condition.is_const:
            self._emit.close_if(condition)


def binding_of(member: Map | Reduce, flat: Expr) -> dict[Expr, Expr]:
    """The axes of a member's body at one element of its domain, or for a row value at one row."""
    domain, extents = domain_of(member)
    return binding(domain, unflatten(flat, extents))
