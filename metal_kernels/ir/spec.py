"""What a well-formed kernel is. Checked after every pass that makes or changes kernels.

Types fit, constants can be written, every local is defined before its use, buffers are touched only as declared,
barriers are reached by all lanes of a workgroup together, matrices are handled by all lanes of a simdgroup alike, and
every index provably lies inside its buffer: a kernel cannot read or write anything but what it is given.
"""

from collections.abc import Iterable
from typing import Final

from metal_kernels.errors import KernelIrError
from metal_kernels.ir.expr import INT_HIGH, INT_LOW, LEAVES, MEMORY, Expr, nodes
from metal_kernels.ir.kernel import (
    GROUP_NAMES,
    LANE_NAME,
    MATRIX_SIZE,
    SIMDGROUP_LANES,
    SIMDGROUP_NAME,
    Access,
    Assign,
    Barrier,
    Buffer,
    Declare,
    For,
    If,
    Kernel,
    Let,
    MatrixLoad,
    MatrixMultiply,
    MatrixStatement,
    MatrixStore,
    MatrixZero,
    Shared,
    SharedStore,
    Statement,
    Store,
)
from metal_kernels.ir.scalars import FLOAT_MAX, SCALAR_OPS, Scalar

MAX_LANES: Final = 256
MAX_SHARED_BYTES: Final = 16 * 1024
MAX_STORAGE_BUFFERS: Final = 8
MAX_GROUPS: Final = 65_535
"""What WebGPU grants on every device without asking."""


def kernel_check(kernel: Kernel) -> None:
    """Raise `KernelIrError`, naming the kernel and the rule, unless the kernel is well-formed."""
    _Check(kernel).run()


def _can_be_written(constant: Expr) -> bool:
    """Shading languages have no text for NaN, infinities and integers beyond 32 bits."""
    low, high = _RANGES[constant.dtype]
    return bool(low <= constant.value <= high)


_RANGES: Final[dict[Scalar, tuple[float, float]]] = {
    "f32": (-FLOAT_MAX, FLOAT_MAX),
    "i32": (INT_LOW, INT_HIGH),
    "u32": (0, 2**32 - 1),
    "bool": (0, 1),
}


class _Check:
    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._buffers = {buffer.name: buffer for buffer in kernel.buffers}
        self._shared = {shared.name: shared for shared in kernel.shared}
        self._seen: set[Expr] = set()
        self._alike = {*GROUP_NAMES, SIMDGROUP_NAME}
        """What all lanes of a simdgroup see the same."""

    def run(self) -> None:
        kernel = self._kernel
        self._require(1 <= kernel.lanes <= MAX_LANES, f"has {kernel.lanes} lanes; at most {MAX_LANES} fit")
        self._require(all(1 <= n <= MAX_GROUPS for n in kernel.groups), f"has a grid of {kernel.groups}")
        self._require(
            len(self._buffers) <= MAX_STORAGE_BUFFERS, f"binds {len(self._buffers)} storage buffers"
        )
        self._require(len(self._buffers) == len(kernel.buffers), "binds two buffers of one name")
        shared_bytes = 4 * sum(shared.elements for shared in kernel.shared)
        self._require(shared_bytes <= MAX_SHARED_BYTES, f"uses {shared_bytes} bytes of workgroup memory")
        scope = {*GROUP_NAMES, LANE_NAME, SIMDGROUP_NAME}
        self._body(kernel.body, scope=scope, mutable=set(), uniform_flow=True)

    def _require(self, holds: bool, what: str) -> None:
        if not holds:
            raise self._broken(what)

    def _broken(self, what: str) -> KernelIrError:
        return KernelIrError(f"Kernel '{self._kernel.name}' {what}.", field=self._kernel.name)

    def _body(
        self, body: Iterable[Statement], *, scope: set[str], mutable: set[str], uniform_flow: bool
    ) -> None:
        """Check statements in order; what a block defines ends with it."""
        scope, mutable = set(scope), set(mutable)
        for statement in body:
            match statement:
                case Let(variable, value) | Declare(variable, value):
                    self._exprs(scope, value)
                    self._require(
                        variable.op == "var" and variable.dtype == value.dtype, f"mistypes {variable}"
                    )
                    self._require(variable.value not in scope, f"defines '{variable}' twice")
                    scope.add(variable.value)
                    mutable |= {variable.value} if isinstance(statement, Declare) else set()
                case Assign(variable, value):
                    self._exprs(scope, value)
                    self._require(
                        variable.value in mutable and variable.dtype == value.dtype,
                        f"may not assign '{variable}'",
                    )
                case Store(_, index, value) | SharedStore(_, index, value):
                    self._exprs(scope, index, value)
                    self._store(statement)
                case For(variable, start, stop, step, inner):
                    self._exprs(scope, start, stop)
                    self._require(step > 0, "has a loop that never ends")
                    inside = start.low >= variable.low and stop.high - 1 <= variable.high
                    self._require(inside, f"runs '{variable}' outside its range")
                    same = uniform_flow and self._is_uniform(start) and self._is_uniform(stop)
                    if same:
                        self._alike.add(variable.value)
                    self._body(inner, scope=scope | {variable.value}, mutable=mutable, uniform_flow=same)
                case If(condition, inner):
                    self._exprs(scope, condition)
                    self._require(condition.dtype == "bool", "branches on what is not a bool")
                    same = uniform_flow and self._is_uniform(condition)
                    self._body(inner, scope=scope, mutable=mutable, uniform_flow=same)
                case Barrier():
                    self._require(uniform_flow, "has a barrier that not every lane reaches")
                case MatrixZero() | MatrixLoad() | MatrixMultiply() | MatrixStore():
                    whole = self._kernel.lanes % SIMDGROUP_LANES == 0
                    self._require(uniform_flow and whole, "has a matrix that not every lane reaches")
                    self._matrix(statement, scope)

    def _matrix(self, statement: MatrixStatement, scope: set[str]) -> None:
        """Matrices are in scope under names that no local has."""
        used: tuple[str, ...] = ()
        match statement:
            case MatrixMultiply(total, left, right):
                used = (total, left, right)
            case MatrixStore(matrix):
                used = (matrix,)
            case MatrixZero(matrix) | MatrixLoad(matrix):
                self._require(f"matrix {matrix}" not in scope, f"defines the matrix '{matrix}' twice")
                scope.add(f"matrix {matrix}")
        for name in used:
            self._require(f"matrix {name}" in scope, f"uses the matrix '{name}' where it is not defined")
        if isinstance(statement, MatrixLoad | MatrixStore):
            self._matrix_place(statement, scope)

    def _matrix_place(self, statement: MatrixLoad | MatrixStore, scope: set[str]) -> None:
        index, shared = statement.index, self._array(statement.shared)
        self._exprs(scope, index)
        places = {node.value for node in nodes(index) if node.op == "var"}
        alike = places <= self._alike and all(node.op not in MEMORY for node in nodes(index))
        self._require(alike, f"places a matrix in '{shared.name}' where lanes of a simdgroup differ")
        last = (MATRIX_SIZE - 1) * (statement.stride + 1)
        inside = index.low >= 0 and statement.stride >= MATRIX_SIZE and index.high + last < shared.elements
        self._require(
            shared.dtype == "f32" and inside, f"may place a matrix outside '{shared.name}': {index}"
        )

    def _is_uniform(self, expr: Expr) -> bool:
        """Whether all lanes of a workgroup have this value; said only of what obviously is so."""
        return all(
            node.op in ("const", "uniform") or node.op in SCALAR_OPS for node in nodes(expr) if not node.args
        )

    def _exprs(self, scope: set[str], *roots: Expr) -> None:
        for node in nodes(*roots):
            if node.op == "var":
                self._require(node.value in scope, f"uses '{node.value}' where it is not defined")
            if node not in self._seen:
                self._seen.add(node)
                self._node(node)

    def _node(self, node: Expr) -> None:
        if node.op == "const":
            self._require(_can_be_written(node), f"has the constant {node.value}, which no {node.dtype} is")
        if node.op in LEAVES:
            return
        if node.op in SCALAR_OPS:
            result = SCALAR_OPS[node.op].result(tuple(arg.dtype for arg in node.args))
            self._require(result == node.dtype, f"has an ill-typed {node.op}")
            return
        match node.op:
            case "load" | "load4":
                buffer = self._buffer(node.value, "write", "reads from")
                self._require(
                    (node.op == "load4") == buffer.vector, f"reads '{node.value}' by the wrong width"
                )
                count = buffer.elements if node.op == "load" or not buffer.elements else buffer.elements // 4
                self._index(node.value, node.args[0], count, node.dtype == buffer.dtype)
            case "shared":
                shared = self._array(node.value)
                self._index(node.value, node.args[0], shared.elements, node.dtype == shared.dtype)
            case "lane4":
                self._require(
                    node.args[0].op in ("load4", "var") and 0 <= node.value < 4, "takes a lane of a scalar"
                )
            case _:
                self._require(False, f"has an unknown node '{node.op}'")

    def _store(self, statement: Store | SharedStore) -> None:
        if isinstance(statement, SharedStore):
            shared = self._array(statement.shared)
            self._index(shared.name, statement.index, shared.elements, statement.value.dtype == shared.dtype)
            return
        buffer = self._buffer(statement.buffer, "read", "writes to")
        self._index(buffer.name, statement.index, buffer.elements, statement.value.dtype == buffer.dtype)

    def _buffer(self, name: str, forbidden: Access, verb: str) -> Buffer:
        buffer = self._buffers.get(name)
        if buffer is None or buffer.access == forbidden:
            raise self._broken(f"{verb} '{name}', which is not declared for that")
        return buffer

    def _array(self, name: str) -> Shared:
        if name not in self._shared:
            raise self._broken(f"uses the undeclared workgroup array '{name}'")
        return self._shared[name]

    def _index(self, name: str, index: Expr, elements: int | None, same_dtype: bool) -> None:
        self._require(same_dtype, f"takes '{name}' for another dtype")
        inside = index.dtype == "i32" and index.low >= 0 and (elements is None or index.high < elements)
        self._require(
            inside, f"may index '{name}' ({elements} elements) at {index.low}..{index.high}: {index}"
        )
