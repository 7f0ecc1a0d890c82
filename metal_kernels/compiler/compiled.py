"""A compiled program: kernels as text, buffers, and the order of dispatches. All that a device's runtime needs.

A step runs every dispatch in order and then the copies. Buffers are counted in elements of four bytes. `data` buffers
hold `elements` for each row of the shard's slice; `order` and `losses` have `batch` and one for each step.
"""

from typing import Literal, TypeAlias

import msgspec

from metal_kernels.ir.scalars import StoredScalar
from metal_kernels.program.graph import ExactInteger, Kind

BufferRole: TypeAlias = Literal["state", "constant", "scratch", "input", "data", "order", "losses", "result"]
BYTES_PER_ELEMENT = 4


class CompiledKernel(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One kernel in the languages of its device class: a software adapter has no Metal. Its name is its entry point.

    For each buffer, `writes` says whether the kernel writes it, and `elements` how many it may touch (0 where that
    depends on the run). With `uses_uniforms` the record of the step is bound too.
    `msl_matrices` is the MSL for devices with `simdgroup_matrix`, empty where that is the same.
    `estimated_us` is how long a dispatch may take on a slow device of the class; measuring corrects it.
    """

    name: str
    lanes: ExactInteger
    groups: tuple[ExactInteger, ExactInteger, ExactInteger]
    writes: list[bool]
    elements: list[ExactInteger]
    uses_uniforms: bool
    estimated_us: ExactInteger
    wgsl: str
    msl: str
    msl_matrices: str


class CompiledBuffer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`key` is the state's key, the constant's name, the input's or result's key; scratch has none."""

    role: BufferRole
    key: str
    dtype: StoredScalar
    elements: ExactInteger


class CompiledDispatch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A kernel, by its position, on buffers, by theirs."""

    kernel: ExactInteger
    buffers: list[ExactInteger]


class CompiledProgram(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`copies` are pairs of buffers (from, to)."""

    kind: Kind
    batch: ExactInteger
    kernels: list[CompiledKernel]
    buffers: list[CompiledBuffer]
    dispatches: list[CompiledDispatch]
    copies: list[tuple[ExactInteger, ExactInteger]]

    def buffer_bytes(self, buffer: CompiledBuffer, *, rows: int, steps: int) -> int:
        """Its size for a slice of `rows` rows and `steps` local steps."""
        repeats = {"data": rows, "order": self.batch * steps, "losses": steps}.get(buffer.role, 1)
        return BYTES_PER_ELEMENT * buffer.elements * repeats

    def peak_bytes(self, *, rows: int = 0, steps: int = 0) -> int:
        """All the memory that a run takes on the GPU."""
        return sum(self.buffer_bytes(buffer, rows=rows, steps=steps) for buffer in self.buffers)

    def largest_buffer_bytes(self, *, rows: int, steps: int) -> int:
        """The largest single buffer that a run makes."""
        return max((self.buffer_bytes(buffer, rows=rows, steps=steps) for buffer in self.buffers), default=0)
