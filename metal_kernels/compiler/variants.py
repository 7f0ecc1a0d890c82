"""A program with kernels for every class of device: what a job stores, once, for whichever device comes."""

from typing import Final

from metal_kernels.compiler.compile import compile_program
from metal_kernels.compiler.compiled import CompiledProgram
from metal_kernels.compiler.format import compiled_validate
from metal_kernels.passes.tiles import DeviceClass
from metal_kernels.program.graph import Program

VARIANTS: Final[tuple[DeviceClass, ...]] = ("cpu", "phone", "desktop")


def compile_variants(program: Program) -> dict[DeviceClass, CompiledProgram]:
    """Kernels by class of device, as any of them will accept; raises `ProgramTooLarge`, or `UncompiledOp`."""
    variants: dict[DeviceClass, CompiledProgram] = {}
    for device in VARIANTS:
        variants[device] = compile_program(program, device=device).compiled
        compiled_validate(program, variants[device])
    return variants
