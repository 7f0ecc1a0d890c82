"""Runs kernels in numpy: the meaning of the IR, and the reference for every renderer.

All lanes of all workgroups advance together, one statement at a time: a local is an array with a row for each
workgroup and a column for each lane, a branch is a mask, and a barrier is already kept. A matrix is an array with a
plane for each simdgroup of each workgroup.
"""

from collections.abc import Mapping, MutableMapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from metal_kernels.ir.expr import Expr, nodes
from metal_kernels.ir.kernel import (
    GROUP_NAMES,
    LANE_NAME,
    MATRIX_SIZE,
    SIMDGROUP_LANES,
    SIMDGROUP_NAME,
    Assign,
    Barrier,
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
    SharedStore,
    Statement,
    Store,
)
from metal_kernels.ir.scalars import NUMPY_DTYPES, SCALAR_OPS

Array: TypeAlias = NDArray[Any]


def kernel_interpret(
    kernel: Kernel, buffers: Mapping[str, Array], uniforms: Mapping[str, float] | None = None
) -> None:
    """Run one dispatch of the kernel on flat arrays by buffer name; written buffers are changed in place."""
    _Grid(kernel, buffers, uniforms or {}).run()


class _Grid:
    def __init__(self, kernel: Kernel, buffers: Mapping[str, Array], uniforms: Mapping[str, float]) -> None:
        self._kernel = kernel
        self._buffers = buffers
        x, y, z = kernel.groups
        self._shape = (x * y * z, kernel.lanes)
        self._rows = np.arange(x * y * z)[:, None]
        places = dict(
            zip(GROUP_NAMES, (self._rows % x, self._rows // x % y, self._rows // (x * y)), strict=True)
        )
        places[LANE_NAME] = np.arange(kernel.lanes)[None, :]
        places[SIMDGROUP_NAME] = places[LANE_NAME] // SIMDGROUP_LANES
        self._locals: MutableMapping[str, Array] = {
            name: np.broadcast_to(np.asarray(place, np.int32), self._shape) for name, place in places.items()
        }
        self._uniforms = {name: NUMPY_DTYPES[dtype](uniforms[name]) for name, dtype in kernel.uniforms}
        self._shared = {
            shared.name: np.zeros((self._shape[0], shared.elements), NUMPY_DTYPES[shared.dtype])
            for shared in kernel.shared
        }
        self._matrices: dict[str, Array] = {}

    def run(self) -> None:
        self._body(self._kernel.body, np.ones(self._shape, bool))

    def _body(self, body: tuple[Statement, ...], active: Array) -> None:
        for statement in body:
            match statement:
                case Let(variable, value):
                    self._locals[variable.value] = self._value(value)
                case Declare(variable, value):
                    self._locals[variable.value] = np.broadcast_to(self._value(value), self._shape).copy()
                case Assign(variable, value):
                    old = self._locals[variable.value]
                    self._locals[variable.value] = np.where(active, self._value(value), old)
                case Store() | SharedStore():
                    self._store(statement, active)
                case For():
                    self._loop(statement, active)
                case If(condition, inner):
                    self._body(inner, active & self._value(condition))
                case Barrier():
                    pass
                case MatrixZero() | MatrixLoad() | MatrixMultiply() | MatrixStore():
                    self._matrix(statement)

    def _store(self, statement: Store | SharedStore, active: Array) -> None:
        parts = self._rows, self._value(statement.index), self._value(statement.value)
        rows, places, values = (np.broadcast_to(part, self._shape)[active] for part in parts)
        if isinstance(statement, Store):
            self._buffers[statement.buffer][places] = values
        else:
            self._shared[statement.shared][rows, places] = values

    def _matrix(self, statement: MatrixStatement) -> None:
        match statement:
            case MatrixZero(matrix):
                planes = (self._shape[0], self._shape[1] // SIMDGROUP_LANES)
                self._matrices[matrix] = np.zeros((*planes, MATRIX_SIZE, MATRIX_SIZE), np.float32)
            case MatrixLoad(matrix, name, index, stride, transposed):
                loaded = self._shared[name][self._planes(index, stride)]
                self._matrices[matrix] = loaded.swapaxes(-1, -2) if transposed else loaded
            case MatrixMultiply(total, left, right):
                product = self._matrices[left] @ self._matrices[right]
                self._matrices[total] = self._matrices[total] + product
            case MatrixStore(matrix, name, index, stride):
                self._shared[name][self._planes(index, stride)] = self._matrices[matrix]

    def _loop(self, loop: For, active: Array) -> None:
        current = np.broadcast_to(self._value(loop.start), self._shape).copy()
        stop = self._value(loop.stop)
        while (running := active & (current < stop)).any():
            self._locals[loop.variable.value] = current
            self._body(loop.body, running)
            current = current + np.int32(loop.step)

    def _value(self, root: Expr) -> Array:
        values: dict[Expr, Any] = {}
        for node in nodes(root):
            values[node] = self._node(node, [values[arg] for arg in node.args])
        return np.asarray(values[root])

    def _node(self, node: Expr, args: list[Any]) -> Any:
        match node.op:
            case "const":
                return NUMPY_DTYPES[node.dtype](node.value)
            case "var":
                return self._locals[node.value]
            case "uniform":
                return self._uniforms[node.value]
            case "load":
                return self._buffers[node.value][self._inside(args[0], len(self._buffers[node.value]))]
            case "load4":
                rows = self._buffers[node.value].reshape(-1, 4)
                return rows[self._inside(args[0], len(rows))]
            case "lane4":
                return args[0][..., node.value]
            case "shared":
                rows = self._shared[node.value]
                return rows[self._rows, self._inside(args[0], rows.shape[1])]
            case _:
                return SCALAR_OPS[node.op].numpy(*args)

    def _planes(self, index: Expr, stride: int) -> tuple[Array, Array]:
        """Where the elements of a matrix lie in shared memory, for each simdgroup."""
        first = np.broadcast_to(self._value(index), self._shape)[:, ::SIMDGROUP_LANES]
        rows, columns = np.arange(MATRIX_SIZE)[:, None] * stride, np.arange(MATRIX_SIZE)
        return self._rows[:, :, None, None], first[:, :, None, None] + rows + columns

    @staticmethod
    def _inside(index: Any, elements: int) -> Any:
        """Lanes that a mask switches off may compute any index; the others stay inside by the spec."""
        return np.clip(index, 0, max(elements - 1, 0))
