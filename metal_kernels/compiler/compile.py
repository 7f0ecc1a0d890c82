"""From a program to kernels: the stages in order."""

import gc
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, TypeAlias

from metal_kernels.compiler.compiled import (
    BufferRole,
    CompiledBuffer,
    CompiledDispatch,
    CompiledKernel,
    CompiledProgram,
)
from metal_kernels.ir.expr import Tensor
from metal_kernels.ir.kernel import Kernel
from metal_kernels.ir.loops import LoopProgram
from metal_kernels.lowering.lower import LOSSES, ORDER, data_name, lower
from metal_kernels.passes.bind import storage_dtype
from metal_kernels.passes.estimate import estimated_us
from metal_kernels.passes.group import group
from metal_kernels.passes.inline import inline
from metal_kernels.passes.memory import plan_memory
from metal_kernels.passes.schedule import Schedule, schedule
from metal_kernels.passes.split import SplitPolicy, split
from metal_kernels.passes.tiles import DeviceClass, Tile
from metal_kernels.program.graph import STATE_ROLES, Kind, Program
from metal_kernels.render.base import render
from metal_kernels.render.msl import MSL
from metal_kernels.render.wgsl import WGSL

Role: TypeAlias = tuple[BufferRole, str]
"""What the runtime does with a tensor, and its key."""

_SPLITS: Final[dict[DeviceClass, SplitPolicy]] = {
    "cpu": SplitPolicy(lanes=64, outputs_per_lane=64, shortest_sum=256),
    "phone": SplitPolicy(lanes=1024),
    "desktop": SplitPolicy(lanes=8192),
}


@dataclass(frozen=True)
class Compilation:
    """The compiled program, with its kernels in the IR for the interpreter and the printer.

    `with_matrices` are those that take another's place, by its name, where simdgroups multiply matrices.
    """

    compiled: CompiledProgram
    kernels: Mapping[str, Kernel]
    with_matrices: Mapping[str, Kernel]


def compile_program(
    program: Program, *, device: DeviceClass = "phone", tile: Tile | None = None
) -> Compilation:
    """Raise `UncompiledOp` if the program has an operation that no rule covers.

    `tile` replaces the table's choice, to measure one.
    """
    with _collector_paused():
        loops = inline(split(lower(program), _SPLITS[device]))
        plan = schedule(loops, group(loops), device, tile)
        return assemble(
            loops, plan, _roles(program, loops), device=device, kind=program.kind, batch=program.batch
        )


@contextmanager
def _collector_paused() -> Iterator[None]:
    """A quarter of a compilation went into looking for cycles among expressions, which have none.

    Of compilations that overlap, the one that paused the collector starts it again.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def assemble(
    loops: LoopProgram,
    plan: Schedule,
    roles: Mapping[str, Role],
    *,
    device: DeviceClass,
    kind: Kind,
    batch: int,
) -> Compilation:
    """Plan memory, render the kernels and write everything down. `roles` says what each kept tensor is, by name."""
    memory = plan_memory(loops, plan)
    kernels = {dispatch.kernel.name: dispatch.kernel for dispatch in plan.dispatches}
    positions = {name: position for position, name in enumerate(kernels)}
    buffers = [_buffer(tensor, *roles[tensor.name]) for tensor in memory.kept]
    buffer_of = {tensor: position for position, tensor in enumerate(memory.kept)}
    for tensor, slot in memory.scratch.items():
        buffer_of[tensor] = len(memory.kept) + slot
    buffers += [CompiledBuffer("scratch", "", "f32", elements) for elements in memory.scratch_elements]
    made = {tensor.name: tensor for tensor in buffer_of}
    compiled = CompiledProgram(
        kind=kind,
        batch=batch,
        kernels=[_kernel(kernel, plan.with_matrices.get(name), device) for name, kernel in kernels.items()],
        buffers=buffers,
        dispatches=[
            CompiledDispatch(positions[one.kernel.name], [buffer_of[tensor] for tensor in one.tensors])
            for one in plan.dispatches
        ],
        copies=[
            (buffer_of[made[new]], buffer_of[loops.inputs[old]])
            for old, new in loops.updates.items()
            if new in made
        ],
    )
    return Compilation(compiled, kernels, plan.with_matrices)


def _kernel(kernel: Kernel, with_matrices: Kernel | None, device: DeviceClass) -> CompiledKernel:
    return CompiledKernel(
        name=kernel.name,
        lanes=kernel.lanes,
        groups=kernel.groups,
        writes=[buffer.access != "read" for buffer in kernel.buffers],
        elements=[buffer.elements or 0 for buffer in kernel.buffers],
        uses_uniforms=bool(kernel.uniforms),
        estimated_us=estimated_us(kernel, device),
        wgsl=render(kernel, WGSL),
        msl=render(kernel, MSL) if device != "cpu" else "",
        msl_matrices=render(with_matrices, MSL) if with_matrices else "",
    )


def _buffer(tensor: Tensor, role: BufferRole, key: str) -> CompiledBuffer:
    rows_apart = tensor.shape[1:] if role in ("data", "order", "losses") else tensor.shape
    elements = Tensor("", tensor.dtype, rows_apart).elements
    return CompiledBuffer(role, key, storage_dtype(tensor.dtype), max(elements, 1))


def _roles(program: Program, loops: LoopProgram) -> dict[str, Role]:
    """What the runtime does with each tensor that is kept, by the tensor's name."""
    roles: dict[str, Role] = {
        ORDER.name: ("order", ""),
        LOSSES.name: ("losses", ""),
        **{value.name: ("constant", value.name) for value in program.graph.constants},
    }
    for entry in program.graph.inputs:
        role: BufferRole = "state" if entry.role in STATE_ROLES else "input"
        roles[entry.value.name] = (role, entry.key)
        roles[data_name(entry)] = ("data", entry.key)
    for key, name in loops.results.items():
        roles[name] = ("result", key)
    for new in loops.updates.values():
        roles.setdefault(new, ("scratch", ""))
    return roles
