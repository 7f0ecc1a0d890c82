"""Writes statements from expressions: shared parts once, each in the outermost block where its parts are known.

A kernel's author gives whole expressions over buffers. What is needed twice becomes a local, every load does, and
what does not change in a loop is computed before it.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from metal_kernels.ir.expr import (
    LEAVES,
    Expr,
    apply,
    const,
    index_var,
    intern,
    local_var,
    memory,
    nodes,
    rebuild,
)
from metal_kernels.ir.kernel import (
    GROUP_NAMES,
    LANE_NAME,
    SIMDGROUP_LANES,
    SIMDGROUP_NAME,
    Assign,
    Barrier,
    Declare,
    For,
    If,
    Let,
    MatrixLoad,
    MatrixMultiply,
    MatrixStore,
    MatrixZero,
    Shared,
    SharedStore,
    Statement,
    Store,
)
from metal_kernels.ir.loops import COMBINE_OPS, Combine
from metal_kernels.ir.scalars import SCALAR_OPS, Scalar

COSTLY: Final = 4
"""Arithmetic from this cost on is moved out of a loop even if it is used once."""


@dataclass
class _Block:
    statements: list[Statement] = field(default_factory=list)
    bound: set[Expr] = field(default_factory=set)
    variables: set[str] = field(default_factory=set)


class Emitter:
    """Collects the body of one kernel. Blocks open and close like the braces of the kernel."""

    def __init__(self, groups: tuple[int, int, int], lanes: int) -> None:
        self.lane = index_var(LANE_NAME, lanes)
        self.simdgroup = index_var(SIMDGROUP_NAME, max(lanes // SIMDGROUP_LANES, 1))
        self.group = tuple(index_var(name, extent) for name, extent in zip(GROUP_NAMES, groups, strict=True))
        self.shared: list[Shared] = []
        self._blocks = [_Block(variables={*GROUP_NAMES, LANE_NAME, SIMDGROUP_NAME})]
        self._names: dict[Expr, Expr] = {}
        self._count = 0

    @property
    def body(self) -> tuple[Statement, ...]:
        return tuple(self._blocks[0].statements)

    def values(self, roots: Sequence[Expr]) -> list[Expr]:
        """The expressions in terms of locals, which are written down first."""
        found = nodes(*roots)
        uses = Counter([arg for node in found for arg in node.args])
        uses.update(roots)
        done: dict[Expr, Expr] = {}
        depths: dict[Expr, int] = {}
        for node in found:
            done[node], depths[node] = self._value(node, done, depths, uses[node] > 1)
        return [done[root] for root in roots]

    def value(self, root: Expr) -> Expr:
        return self.values([root])[0]

    def declare(self, dtype: Scalar, start: Expr) -> Expr:
        """A local that changes."""
        variable = self._fresh(dtype)
        self._write(Declare(variable, start), variable)
        return variable

    def assign(self, variable: Expr, value: Expr) -> None:
        self._blocks[-1].statements.append(Assign(variable, value))

    def let(self, value: Expr) -> Expr:
        """A local that holds a value as it is now."""
        variable = self._fresh(value.dtype, value)
        self._write(Let(variable, value), variable)
        return variable

    def store(self, buffer: str, index: Expr, value: Expr) -> None:
        self._blocks[-1].statements.append(Store(buffer, index, value))

    def shared_store(self, shared: Shared, index: Expr, value: Expr) -> None:
        self._blocks[-1].statements.append(SharedStore(shared.name, index, value))

    def barrier(self, scope: Literal["workgroup", "simdgroup"] = "workgroup") -> None:
        self._blocks[-1].statements.append(Barrier(scope))

    def matrix_zero(self) -> str:
        name = self._matrix_name()
        self._blocks[-1].statements.append(MatrixZero(name))
        return name

    def matrix_load(self, shared: Shared, index: Expr, stride: int, *, transposed: bool = False) -> str:
        name = self._matrix_name()
        self._blocks[-1].statements.append(MatrixLoad(name, shared.name, index, stride, transposed))
        return name

    def matrix_multiply(self, total: str, left: str, right: str) -> None:
        self._blocks[-1].statements.append(MatrixMultiply(total, left, right))

    def matrix_store(self, matrix: str, shared: Shared, index: Expr, stride: int) -> None:
        self._blocks[-1].statements.append(MatrixStore(matrix, shared.name, index, stride))

    def _matrix_name(self) -> str:
        self._count += 1
        return f"m{self._count}"

    def share(self, dtype: Scalar, elements: int) -> Shared:
        self.shared.append(Shared(f"tile{len(self.shared)}", dtype, elements))
        return self.shared[-1]

    def open(self, *variables: Expr) -> None:
        self._blocks.append(_Block(variables={variable.value for variable in variables}))

    def _close(self) -> tuple[Statement, ...]:
        block = self._blocks.pop()
        for node in block.bound:
            del self._names[node]
        return tuple(block.statements)

    def close_for(self, variable: Expr, start: Expr, stop: Expr, step: int) -> None:
        self._blocks[-2].statements.append(For(variable, start, stop, step, self._close()))

    def close_if(self, condition: Expr) -> None:
        self._blocks[-2].statements.append(If(condition, self._close()))

    def loop_var(self, extent: int) -> Expr:
        self._count += 1
        return intern("var", "i32", value=f"i{self._count}", bounds=(0, extent - 1))

    def _value(
        self, node: Expr, done: dict[Expr, Expr], depths: dict[Expr, int], is_shared: bool
    ) -> tuple[Expr, int]:
        """What stands for the node, and the depth of the block from which on it is known."""
        known = self._names.get(node)
        if known is not None:
            return known, self._depth_of(known)
        if node.op in LEAVES:
            return node, self._depth_of(node)
        new = rebuild(node, tuple([done[arg] for arg in node.args]))
        depth = max([depths[arg] for arg in node.args], default=0)
        is_load = node.op in ("load", "load4")
        is_costly = node.op in SCALAR_OPS and SCALAR_OPS[node.op].cost >= COSTLY
        moves = depth < len(self._blocks) - 1
        if new.op in LEAVES or not (is_load or is_shared or (moves and is_costly)):
            return new, depth
        variable = self._fresh(new.dtype, new)
        block = self._blocks[depth]
        block.statements.append(Let(variable, new))
        block.variables.add(variable.value)
        block.bound.add(node)
        self._names[node] = variable
        return variable, depth

    def _depth_of(self, leaf: Expr) -> int:
        if leaf.op != "var":
            return 0
        for depth, block in enumerate(self._blocks):
            if leaf.value in block.variables:
                return depth
        raise KeyError(f"{leaf} is used outside its block")

    def _fresh(self, dtype: Scalar, like: Expr | None = None) -> Expr:
        self._count += 1
        bounds = (like.low, like.high) if like is not None and dtype == "i32" else None
        return local_var(f"v{self._count}", dtype, bounds) if bounds else local_var(f"v{self._count}", dtype)

    def _write(self, statement: Statement, variable: Expr) -> None:
        self._blocks[-1].statements.append(statement)
        self._blocks[-1].variables.add(variable.value)


def workgroup_combine(emit: Emitter, lanes: int, partials: Iterable[tuple[Expr, Combine]]) -> list[Expr]:
    """Each lane's partial results combined over the workgroup by a tree in workgroup memory; every lane gets them."""
    pairs = list(partials)
    arrays = [emit.share(partial.dtype, lanes) for partial, _ in pairs]
    for shared, (partial, _) in zip(arrays, pairs, strict=True):
        emit.shared_store(shared, emit.lane, partial)
    emit.barrier()
    width = lanes // 2
    while width:
        emit.open()
        for shared, (_, combine) in zip(arrays, pairs, strict=True):
            other_lane = apply("min", emit.lane + width, const(lanes - 1, "i32"))
            mine, other = (
                memory("shared", shared.dtype, shared.name, lane) for lane in (emit.lane, other_lane)
            )
            emit.shared_store(shared, emit.lane, apply(COMBINE_OPS[combine], mine, other))
        emit.close_if(emit.lane < width)
        emit.barrier()
        width //= 2
    zero = emit.lane * 0
    return [emit.let(memory("shared", shared.dtype, shared.name, zero)) for shared in arrays]
