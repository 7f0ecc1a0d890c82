"""A program with kernels for every class of device: what a job stores, once, for whichever device comes."""

from typing import Final

from metal_kernels.compiler.compile import compile_program
from metal_kernels.compiler.compiled import CompiledProgram
from metal_kernels.compiler.format import compiled_validate
from metal_kernels.errors import UncompiledOp
from metal_kernels.frontend.decompositions import instead_of
from metal_kernels.passes.tiles import DeviceClass
from metal_kernels.program.graph import Program

VARIANTS: Final[tuple[DeviceClass, ...]] = ("cpu", "phone", "desktop")


def compile_variants(program: Program) -> dict[DeviceClass, CompiledProgram]:
    """Kernels by class of device, as any of them will accept.

    Raises `ProgramTooLarge`, or `UncompiledOp` naming the operation, its place in the module and what to use instead.
    """
    variants: dict[DeviceClass, CompiledProgram] = {}
    for device in VARIANTS:
        try:
            variants[device] = compile_program(program, device=device).compiled
        except UncompiledOp as error:
            raise _explained(program, error) from error
        compiled_validate(program, variants[device])
    return variants


def _explained(program: Program, error: UncompiledOp) -> UncompiledOp:
    """The error in its user's words: not the node's name but the line that made it."""
    op = next((node.op for node in program.graph.nodes if node.name == error.field), None)
    if op is None:
        return error
    reason = error.message.removeprefix(f"Node '{error.field}': ").rstrip(".")
    where = program.origins.get(error.field or "", "in the program")
    return UncompiledOp(f"The operation used {where}: {reason}; {instead_of(op)}.", field=error.field)
