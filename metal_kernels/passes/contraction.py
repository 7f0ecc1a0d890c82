"""Kernels of products, from one template: matrix products in every transposition, batched, and convolutions in all
three directions differ only in the expressions that read their operands.

Each lane keeps a tile of results in locals. Results beyond the edge are computed from clamped coordinates and not
stored, so no load needs a branch. The maps that follow the product are applied to each result before it is stored.
"""

from collections.abc import Callable
from itertools import product
from math import ceil
from typing import TypeAlias

from metal_kernels.ir.expr import Expr, Tensor, apply, const, flatten, memory, substitute, where
from metal_kernels.ir.kernel import Shared
from metal_kernels.ir.loops import Contract, Map, binding, contract_axes
from metal_kernels.passes.bind import Binder, KernelDraft
from metal_kernels.passes.emit import Emitter
from metal_kernels.passes.group import Group
from metal_kernels.passes.rows import binding_of
from metal_kernels.passes.tiles import Tile, turns_of, whole_axes

Operand: TypeAlias = Callable[[Expr, Expr], Expr]
"""An operand of this lane's batch, by (row or column, term)."""


Place: TypeAlias = tuple[Expr, Expr]
"""A coordinate of the results, clamped to those there are, and whether it exists."""


def contraction_kernel(
    group: Group,
    stored: list[Tensor],
    binder: Binder,
    tile: Tile,
    *,
    fused: bool,
    writer: "type[ContractionWriter] | None" = None,
) -> KernelDraft:
    """`fused` says that the device multiplies and adds at once faster than one after the other."""
    contract = group.contract
    if contract is None:
        raise TypeError("a contraction kernel needs a product")
    batch, m, n, _ = contract.extents
    groups = (ceil(n / tile.group_columns), ceil(m / tile.group_rows), batch)
    emit = Emitter(groups, tile.lanes)
    (writer or ContractionWriter)(group, contract, tile, emit, binder, fused=fused).write(stored)
    return KernelDraft("product", tile.lanes, groups, tuple(emit.shared), emit.body)


class ContractionWriter:
    def __init__(
        self, group: Group, contract: Contract, tile: Tile, emit: Emitter, binder: Binder, *, fused: bool
    ) -> None:
        self._members = {member.tensor: member for member in group.members}
        self._contract = contract
        self._tile = tile
        self._emit = emit
        self._binder = binder
        self._fused = fused
        x, y, self._batch = emit.group
        _, m, n, self._terms = contract.extents
        self._left_side, self._right_side = self._resolved(contract.left), self._resolved(contract.right)
        lane_m, lane_n = emit.lane // tile.lanes_n, emit.lane % tile.lanes_n
        self._group_row, self._group_column = y * tile.group_rows, x * tile.group_columns
        self._lane_row, self._lane_column = lane_m * tile.rows, lane_n * tile.columns
        self._rows = self._places(y * tile.lanes_m + lane_m, tile.rows, m)
        self._columns = self._places(x * tile.lanes_n + lane_n, tile.columns, n)

    def write(self, stored: list[Tensor]) -> None:
        zero = const(0.0, "f32")
        shape = (len(self._rows), len(self._columns))
        totals = [[self._emit.declare("f32", zero) for _ in range(shape[1])] for _ in range(shape[0])]
        if self._tile.staged:
            lefts, rights = self._share_operands()
            self._staged_sum(lefts, rights, lambda: self._accumulate_staged(totals, lefts, rights))
        else:
            self._direct_sum(totals)
        for i, j in product(range(shape[0]), range(shape[1])):
            self._store(stored, self._rows[i], self._columns[j], totals[i][j])

    @staticmethod
    def _places(tile_index: Expr, size: int, extent: int) -> list[Place]:
        """The coordinates of a lane along one axis.

        The tile is clamped first, which keeps its coordinates aligned to its size. An axis shorter than a tile has
        only as many coordinates as it is long.
        """
        tiles = ceil(extent / size)
        first = apply("min", tile_index, const(tiles - 1, "i32")) * size
        last = const(extent - 1, "i32")
        return [
            (apply("min", first + offset, last), (tile_index < tiles) & (first + offset < extent))
            for offset in range(min(size, extent))
        ]

    def _resolved(self, side: Expr) -> Expr:
        """An operand of this lane's batch, its reads turned into loads once for all places."""
        b, *_ = contract_axes(self._contract.extents)
        return self._binder.resolve(side, binding((b,), (self._batch,)), lambda tensor, flat: None)

    def _left(self, row: Expr, term: Expr) -> Expr:
        _, m, _, k = contract_axes(self._contract.extents)
        return substitute(self._left_side, binding((m, k), (row, term)))

    def _right(self, column: Expr, term: Expr) -> Expr:
        _, _, n, k = contract_axes(self._contract.extents)
        return substitute(self._right_side, binding((n, k), (column, term)))

    # Without workgroup memory.

    def _direct_sum(self, totals: list[list[Expr]]) -> None:
        """Loops over the outer axes of the terms, and turns of `depth` of the inner ones spelled out."""
        outer, count = turns_of(whole_axes(self._contract.terms) or (self._terms,), self._tile.depth)
        loops = []
        first = const(0, "i32")
        for extent in outer:
            loops.append(self._emit.loop_var(extent))
            self._emit.open(loops[-1])
            first = first * extent + loops[-1]
        self._direct_turns(totals, first * count, count)
        for variable in reversed(loops):
            self._emit.close_for(variable, const(0, "i32"), const(variable.high + 1, "i32"), 1)

    def _direct_turns(self, totals: list[list[Expr]], first: Expr, count: int) -> None:
        depth = min(self._tile.depth, count)
        turns, rest = divmod(count, depth)
        if turns > 1:
            turn = self._emit.loop_var(turns)
            self._emit.open(turn)
            self._direct_turn(totals, first + turn * depth, depth)
            self._emit.close_for(turn, const(0, "i32"), const(turns, "i32"), 1)
        else:
            self._direct_turn(totals, first, depth)
        if rest:
            self._direct_turn(totals, first + turns * depth, rest)

    def _direct_turn(self, totals: list[list[Expr]], first: Expr, depth: int) -> None:
        """Each term is multiplied as soon as it is loaded, so that few values have to be kept at a time."""
        for offset in range(depth):
            values = self._emit.values(
                [self._left(row, first + offset) for row, _ in self._rows]
                + [self._right(column, first + offset) for column, _ in self._columns]
            )
            self._accumulate(totals, values[: len(self._rows)], values[len(self._rows) :])

    def _accumulate(self, totals: list[list[Expr]], lefts: list[Expr], rights: list[Expr]) -> None:
        for i, left in enumerate(lefts):
            for j, right in enumerate(rights):
                total = totals[i][j]
                self._emit.assign(
                    total, apply("fma", left, right, total) if self._fused else total + left * right
                )

    # With workgroup memory.

    def _share_operands(self) -> tuple[Shared, Shared]:
        """Room for a turn of terms of the workgroup's rows, and of its columns."""
        tile = self._tile
        return (
            self._emit.share("f32", tile.depth * tile.group_rows),
            self._emit.share("f32", tile.depth * tile.group_columns),
        )

    def _staged_sum(self, lefts: Shared, rights: Shared, accumulate: Callable[[], None]) -> None:
        """`accumulate` adds up the products of the terms that lie in workgroup memory, term after term."""
        emit, tile = self._emit, self._tile
        turn = emit.loop_var(ceil(self._terms / tile.depth))
        emit.open(turn)
        _, m, n, _ = self._contract.extents
        self._stage(lefts, tile.group_rows, self._group_row, m, turn, self._left)
        self._stage(rights, tile.group_columns, self._group_column, n, turn, self._right)
        emit.barrier()
        accumulate()
        emit.barrier()
        emit.close_for(turn, const(0, "i32"), const(ceil(self._terms / tile.depth), "i32"), 1)

    def _accumulate_staged(self, totals: list[list[Expr]], lefts: Shared, rights: Shared) -> None:
        emit, tile = self._emit, self._tile
        offset = emit.loop_var(tile.depth)
        emit.open(offset)
        self._accumulate(
            totals,
            [
                emit.let(self._staged(lefts, offset * tile.group_rows + self._lane_row + i))
                for i in range(len(self._rows))
            ],
            [
                emit.let(self._staged(rights, offset * tile.group_columns + self._lane_column + j))
                for j in range(len(self._columns))
            ],
        )
        emit.close_for(offset, const(0, "i32"), const(tile.depth, "i32"), 1)

    def _staged(self, shared: Shared, index: Expr) -> Expr:
        return memory("shared", "f32", shared.name, index)

    def _stage(
        self, shared: Shared, width: int, first: Expr, extent: int, turn: Expr, operand: Operand
    ) -> None:
        """All lanes bring `depth` terms of `width` rows or columns; neighbours in memory go to neighbouring lanes."""
        tile, emit = self._tile, self._emit
        along_terms = self._lies_along_terms(operand, turn, extent)
        values: list[Expr] = []
        places: list[Expr] = []
        count = tile.depth * width
        for begin in range(0, count, tile.lanes):
            index = apply("min", emit.lane + begin, const(count - 1, "i32"))
            term, place = (
                (index % tile.depth, index // tile.depth) if along_terms else (index // width, index % width)
            )
            k = turn * tile.depth + term
            value = operand(
                apply("min", first + place, const(extent - 1, "i32")),
                apply("min", k, const(self._terms - 1, "i32")),
            )
            values.append(where(k < self._terms, value, 0.0))
            places.append(term * width + place)
        for place, value in zip(emit.values(places), emit.values(values), strict=True):
            emit.shared_store(shared, place, value)

    def _lies_along_terms(self, operand: Operand, turn: Expr, extent: int) -> bool:
        """Whether the next term is the next element in memory."""
        if self._terms < 2:
            return False
        zero = const(0, "i32")
        first, second = operand(zero, zero), operand(zero, const(1, "i32"))
        if first.op != "load" or second.op != "load":
            return False
        step = second.args[0] - first.args[0]
        return step.is_const and step.value == 1

    # Results.

    def _store(self, stored: list[Tensor], at_row: Place, at_column: Place, total: Expr) -> None:
        """Apply the maps that follow to one result and store what is kept."""
        emit = self._emit
        (row, row_exists), (column, column_exists) = at_row, at_column
        flat = flatten((self._batch, row, column), self._contract.extents[:3])
        condition = row_exists & column_exists
        if condition is const(False, "bool"):
            return
        if not condition.is_const:
            emit.open()
        made: dict[Tensor, Expr] = {self._contract.tensor: emit.let(total)}

        def known(tensor: Tensor, at: Expr) -> Expr | None:
            """The value of a member; all are read at this one place."""
            member = self._members.get(tensor)
            if isinstance(member, Map) and tensor not in made:
                made[tensor] = self._binder.resolve(member.body, binding_of(member, at), known)
            return made.get(tensor)

        values = [known(tensor, flat) for tensor in stored]
        ready = emit.values([value for value in values if value is not None])
        index = emit.value(flat)
        for tensor, value in zip(stored, ready, strict=True):
            emit.store(*self._binder.stored(tensor, index, value))
        if not condition.is_const:
            emit.close_if(condition)
