"""A program with kernels for every class of device: what a job stores, once, for whichever device comes."""

from typing import Final

from metal_kernels.compiler.compile import compile_program
from metal_kernels.compiler.compiled import CompiledProgram
from metal_kernels.compiler.delta import compile_delta
from metal_kernels.compiler.format import compiled_validate, delta_validate
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


def compile_deltas(program: Program) -> dict[DeviceClass, CompiledProgram]:
    """The kernels that encode the program's delta, by class of device; none for a model without floating tensors."""
    if all(value.dtype != "float32" for value in program.model_spec.values()):
        return {}
    deltas: dict[DeviceClass, CompiledProgram] = {}
    for device in VARIANTS:
        deltas[device] = compile_delta(program.model_spec, device=device, bits=program.delta_bits).compiled
        delta_validate(program, deltas[device])
    return deltas
