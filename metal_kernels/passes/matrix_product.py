"""Kernels of products for devices whose simdgroups multiply matrices (Metal's `simdgroup_matrix`).

They take the place of the staged kernels, with the same buffers, grid and workgroup: operands are brought into
workgroup memory in the same way, and each simdgroup adds up a block of the workgroup's results, matrix by matrix.
As no lane knows which results it holds, a block goes back through workgroup memory, where lanes take results one by
one to apply what follows and store them.
"""

from dataclasses import dataclass

from metal_kernels.ir.expr import Expr, Tensor, apply, const, memory
from metal_kernels.ir.kernel import MATRIX_ELEMENTS, MATRIX_SIZE, SIMDGROUP_LANES, Shared
from metal_kernels.passes.bind import Binder, KernelDraft
from metal_kernels.passes.contraction import ContractionWriter, Place, contraction_kernel
from metal_kernels.passes.group import Group
from metal_kernels.passes.tiles import Tile


def matrix_kernel(group: Group, stored: list[Tensor], binder: Binder, tile: Tile) -> KernelDraft | None:
    """The kernel, or None where the tile does not come apart into whole matrices."""
    if blocks_of(tile) is None:
        return None
    return contraction_kernel(group, stored, binder, tile, fused=True, writer=_MatrixWriter)


@dataclass(frozen=True)
class Blocks:
    """How a workgroup's results are shared out: its simdgroups in rows of `across`, each with `rows` x `columns`
    matrices."""

    across: int
    rows: int
    columns: int


def blocks_of(tile: Tile) -> Blocks | None:
    """The most square blocks, which load the fewest matrices for what they multiply."""
    simdgroups, odd_lanes = divmod(tile.lanes, SIMDGROUP_LANES)
    rows, odd_rows = divmod(tile.group_rows, MATRIX_SIZE)
    columns, odd_columns = divmod(tile.group_columns, MATRIX_SIZE)
    if not tile.staged or odd_lanes or odd_rows or odd_columns or tile.depth % MATRIX_SIZE:
        return None
    if tile.depth * tile.group_columns < simdgroups * MATRIX_ELEMENTS:
        return None  # no room for a matrix of each simdgroup on its way back
    choices = [
        Blocks(across, rows * across // simdgroups, columns // across)
        for across in range(1, simdgroups + 1)
        if simdgroups % across == 0 and columns % across == 0 and rows % (simdgroups // across) == 0
    ]
    return min(choices, key=lambda blocks: blocks.rows + blocks.columns, default=None)


class _MatrixWriter(ContractionWriter):
    def write(self, stored: list[Tensor]) -> None:
        blocks = blocks_of(self._tile)
        if blocks is None:
            raise ValueError(f"{self._tile} does not come apart into matrices")
        self._block_row = self._emit.simdgroup // blocks.across * (blocks.rows * MATRIX_SIZE)
        self._block_column = self._emit.simdgroup % blocks.across * (blocks.columns * MATRIX_SIZE)
        totals = [self._emit.matrix_zero() for _ in range(blocks.rows * blocks.columns)]
        lefts, rights = self._share_operands()
        self._staged_sum(lefts, rights, lambda: self._accumulate_matrices(totals, blocks, lefts, rights))
        self._store_matrices(stored, totals, blocks, rights)

    def _accumulate_matrices(self, totals: list[str], blocks: Blocks, lefts: Shared, rights: Shared) -> None:
        emit, tile = self._emit, self._tile
        for term in range(0, tile.depth, MATRIX_SIZE):
            right_row = [
                emit.matrix_load(
                    rights,
                    self._block_column + (term * tile.group_columns + j * MATRIX_SIZE),
                    tile.group_columns,
                )
                for j in range(blocks.columns)
            ]
            for i in range(blocks.rows):
                place = self._block_row + (term * tile.group_rows + i * MATRIX_SIZE)
                left = emit.matrix_load(lefts, place, tile.group_rows, transposed=True)
                for j, right in enumerate(right_row):
                    emit.matrix_multiply(totals[i * blocks.columns + j], left, right)

    def _store_matrices(
        self, stored: list[Tensor], totals: list[str], blocks: Blocks, passage: Shared
    ) -> None:
        """As many matrices at a time as a simdgroup's part of the passage has room for."""
        emit = self._emit
        simdgroups = self._tile.lanes // SIMDGROUP_LANES
        at_once = min(passage.elements // (simdgroups * MATRIX_ELEMENTS), len(totals))
        part = emit.simdgroup * (at_once * MATRIX_ELEMENTS)
        for first in range(0, len(totals), at_once):
            batch = totals[first : first + at_once]
            for slot, matrix in enumerate(batch):
                emit.matrix_store(matrix, passage, part + slot * MATRIX_ELEMENTS, MATRIX_SIZE)
            emit.barrier("simdgroup")
            turns = len(batch) * MATRIX_ELEMENTS // SIMDGROUP_LANES
            turn = emit.loop_var(turns)
            emit.open(turn)
            element = turn * SIMDGROUP_LANES + emit.lane % SIMDGROUP_LANES
            matrix_at, element_at = element // MATRIX_ELEMENTS + first, element % MATRIX_ELEMENTS
            row = matrix_at // blocks.columns * MATRIX_SIZE + element_at // MATRIX_SIZE
            column = matrix_at % blocks.columns * MATRIX_SIZE + element_at % MATRIX_SIZE
            _, m, n, _ = self._contract.extents
            self._store(
                stored,
                _clamped(self._group_row + self._block_row + row, m),
                _clamped(self._group_column + self._block_column + column, n),
                memory("shared", "f32", passage.name, part + element),
            )
            emit.close_for(turn, const(0, "i32"), const(turns, "i32"), 1)
            emit.barrier("simdgroup")


def _clamped(at: Expr, extent: int) -> Place:
    return apply("min", at, const(extent - 1, "i32")), at < extent
