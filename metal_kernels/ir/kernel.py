"""Loop-level kernels: what one lane of one workgroup does, as a tree of statements over scalar expressions.

A kernel runs on a grid of `groups` workgroups of `lanes` lanes each. A lane sees the place of its workgroup in the
grid and its own in the workgroup; the lanes of a workgroup share the arrays in `shared` and wait for each other at a
`Barrier`.

Where the device has them, the 32 lanes of a simdgroup together hold square matrices of float32 and multiply them.
Statements about matrices are the same for all lanes of a simdgroup. Matrices go by their names; they are no
expressions.
"""

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from metal_kernels.ir.expr import Expr
from metal_kernels.ir.scalars import Scalar

Access: TypeAlias = Literal["read", "write", "read_write"]

GROUP_NAMES: Final = ("group_x", "group_y", "group_z")
LANE_NAME: Final = "lane"
SIMDGROUP_NAME: Final = "simdgroup"
"""The place of a lane's simdgroup in the workgroup."""

SIMDGROUP_LANES: Final = 32
MATRIX_SIZE: Final = 8
MATRIX_ELEMENTS: Final = MATRIX_SIZE * MATRIX_SIZE

UNIFORMS: Final[dict[str, Scalar]] = {
    "lr": "f32", "step": "f32", "step_index": "i32", "seed_low": "u32", "seed_high": "u32",
}  # fmt: skip
"""The record of per-step numbers, in order, four bytes each."""


@dataclass(frozen=True)
class Buffer:
    """Storage that a dispatch binds. `elements` counts scalars; None where it is known only at run time.

    A `vector` buffer is declared as an array of four-element vectors; it is accessed by `load4` alone.
    """

    name: str
    dtype: Scalar
    elements: int | None
    access: Access
    vector: bool = False


@dataclass(frozen=True)
class Shared:
    """An array in workgroup memory."""

    name: str
    dtype: Scalar
    elements: int


@dataclass(frozen=True)
class Let:
    """A local that never changes."""

    variable: Expr
    value: Expr


@dataclass(frozen=True)
class Declare:
    """A local that `Assign` changes."""

    variable: Expr
    value: Expr


@dataclass(frozen=True)
class Assign:
    variable: Expr
    value: Expr


@dataclass(frozen=True)
class Store:
    buffer: str
    index: Expr
    value: Expr


@dataclass(frozen=True)
class SharedStore:
    shared: str
    index: Expr
    value: Expr


@dataclass(frozen=True)
class For:
    """`start <= variable < stop` in steps of `step`; start and stop may differ from lane to lane."""

    variable: Expr
    start: Expr
    stop: Expr
    step: int
    body: tuple["Statement", ...]


@dataclass(frozen=True)
class If:
    condition: Expr
    body: tuple["Statement", ...]


@dataclass(frozen=True)
class Barrier:
    """Every lane of the workgroup, or of the simdgroup, arrives before one goes on, and sees what the others stored
    in shared memory."""

    scope: Literal["workgroup", "simdgroup"] = "workgroup"


@dataclass(frozen=True)
class MatrixZero:
    """A new matrix of zeros, which `MatrixMultiply` adds to."""

    matrix: str


@dataclass(frozen=True)
class MatrixLoad:
    """A new matrix from shared memory: its rows begin `stride` elements apart, from `index` on; `transposed`, its
    columns do."""

    matrix: str
    shared: str
    index: Expr
    stride: int
    transposed: bool = False


@dataclass(frozen=True)
class MatrixMultiply:
    """total += left @ right."""

    total: str
    left: str
    right: str


@dataclass(frozen=True)
class MatrixStore:
    """The matrix to shared memory, its rows `stride` elements apart."""

    matrix: str
    shared: str
    index: Expr
    stride: int


MatrixStatement: TypeAlias = MatrixZero | MatrixLoad | MatrixMultiply | MatrixStore
Statement: TypeAlias = Let | Declare | Assign | Store | SharedStore | For | If | Barrier | MatrixStatement


@dataclass(frozen=True)
class Kernel:
    """`uniforms` are the per-step numbers it reads."""

    name: str
    buffers: tuple[Buffer, ...]
    uniforms: tuple[tuple[str, Scalar], ...]
    shared: tuple[Shared, ...]
    lanes: int
    groups: tuple[int, int, int]
    body: tuple[Statement, ...]
