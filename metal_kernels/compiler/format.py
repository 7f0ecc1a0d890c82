"""Compiled programs in the program's own file: for each device class one metadata entry for the step, and one for the
kernels that encode its delta.

A reader that knows nothing of kernels still finds its program there. Kernels were proven to stay inside buffers of
the sizes they declare (`ir/spec.py`); loading checks that every dispatch binds buffers at least so large.
"""

import re
from collections.abc import Mapping
from typing import Final

import msgspec

from metal_kernels.compiler.compiled import (
    BYTES_PER_ELEMENT,
    CompiledBuffer,
    CompiledDispatch,
    CompiledKernel,
    CompiledProgram,
)
from metal_kernels.delta import BLOCK, QUANTISED
from metal_kernels.errors import BadReference, ProgramFormatError, ProgramTooLarge, SpecMismatch
from metal_kernels.ir.spec import MAX_GROUPS, MAX_LANES, MAX_STORAGE_BUFFERS
from metal_kernels.passes.tiles import DeviceClass
from metal_kernels.program.format import program_dumps, program_loads
from metal_kernels.program.graph import STATE_ROLES, Kind, Program, Value
from metal_kernels.tensorfile import tensorfile_dumps, tensorfile_loads

MAX_DISPATCHES: Final = 20_000
MAX_SOURCE_BYTES: Final = 256 * 1024
MAX_BUFFER_ELEMENTS: Final = 2**28
_KERNEL_NAME: Final = re.compile(r"[a-z]+_[0-9a-f]{12}")

_encoder: Final = msgspec.json.Encoder(order="deterministic")
_decoder: Final = msgspec.json.Decoder(CompiledProgram)


def compiled_dumps(
    program: Program,
    variants: Mapping[DeviceClass, CompiledProgram],
    deltas: Mapping[DeviceClass, CompiledProgram] | None = None,
) -> bytes:
    """The program's file with its compiled variants, and the kernels that encode its delta. Equal input gives equal
    bytes."""
    file = tensorfile_loads(program_dumps(program))
    entries = {f"compiled.{device}": compiled for device, compiled in variants.items()}
    entries |= {f"delta.{device}": compiled for device, compiled in (deltas or {}).items()}
    texts = {entry: _encoder.encode(compiled).decode() for entry, compiled in entries.items()}
    return tensorfile_dumps(file.tensors, metadata={**file.metadata, **texts})


def compiled_loads(
    data: bytes, device: DeviceClass, *, expected_sha256: str | None = None
) -> tuple[Program, CompiledProgram]:
    """The program and its variant for a device class; a `ProgramError` if anything is wrong with either."""
    program = program_loads(data, expected_sha256=expected_sha256)
    compiled = _entry(data, f"compiled.{device}")
    if compiled is None:
        raise ProgramFormatError(
            f"The program has no kernels for the device class '{device}'; compile it for that."
        )
    compiled_validate(program, compiled)
    return program, compiled


def delta_loads(data: bytes, device: DeviceClass) -> CompiledProgram | None:
    """The kernels that encode the program's delta on a device class, if the file has them."""
    program = program_loads(data)
    compiled = _entry(data, f"delta.{device}")
    if compiled is not None:
        delta_validate(program, compiled)
    return compiled


def _entry(data: bytes, name: str) -> CompiledProgram | None:
    text = tensorfile_loads(data).metadata.get(name)
    if text is None:
        return None
    try:
        return _decoder.decode(text)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise ProgramFormatError(f"The program's kernels are malformed: {error}.") from error


def compiled_validate(program: Program, compiled: CompiledProgram) -> None:
    """Raise the `ProgramError` that says what is wrong first; return if every dispatch can be made."""
    _validate(compiled, program.kind, _known_values(program))


def delta_validate(program: Program, compiled: CompiledProgram) -> None:
    """The same for the kernels that encode the program's delta."""
    _validate(compiled, "forward", _delta_values(program))


def _validate(compiled: CompiledProgram, kind: Kind, known: dict[tuple[str, str], Value]) -> None:
    if len(compiled.dispatches) > MAX_DISPATCHES:
        raise ProgramTooLarge(
            f"A step has {len(compiled.dispatches)} dispatches; the limit is {MAX_DISPATCHES}."
        )
    if compiled.kind != kind or compiled.batch < 1:
        raise ProgramFormatError("The kernels were compiled from another program.")
    for buffer in compiled.buffers:
        _check_buffer(buffer, known)
    for kernel in compiled.kernels:
        _check_kernel(kernel)
    for dispatch in compiled.dispatches:
        _check_dispatch(dispatch, compiled)
    for pair in compiled.copies:
        if any(not 0 <= place < len(compiled.buffers) for place in pair):
            raise BadReference("A copy names a buffer that does not exist.", field="copies")
        if compiled.buffers[pair[0]].elements < compiled.buffers[pair[1]].elements:
            raise SpecMismatch("A copy reads past the end of its buffer.", field="copies")


def _known_values(program: Program) -> dict[tuple[str, str], Value]:
    """What buffers may hold, by role and key."""
    known = {("constant", value.name): value for value in program.graph.constants}
    for entry in program.graph.inputs:
        role = "state" if entry.role in STATE_ROLES else "input"
        known[role, entry.key] = known["data", entry.key] = entry.value
    return known


def _delta_values(program: Program) -> dict[tuple[str, str], Value]:
    """What buffers of a delta's kernels hold: `compiler/delta.py` names them."""
    known: dict[tuple[str, str], Value] = {}
    bits = program.delta_bits
    for name, value in program.model_spec.items():
        if value.dtype != "float32":
            continue
        blocks = -(-value.elements // BLOCK)
        sizes = {
            ("input", f"base/{name}"): value.elements,
            ("input", f"new/{name}"): value.elements,
            ("state", f"residual/{name}"): value.elements,
            ("result", f"scales/{name}"): blocks,
            ("result", QUANTISED[bits] + name): blocks * BLOCK * bits // (8 * BYTES_PER_ELEMENT),
        }
        known |= {place: Value(name, "float32", (elements,)) for place, elements in sizes.items()}
    return known


def _check_buffer(buffer: CompiledBuffer, known: dict[tuple[str, str], Value]) -> None:
    if not 1 <= buffer.elements <= MAX_BUFFER_ELEMENTS:
        raise ProgramTooLarge(
            f"A {buffer.role} buffer has {buffer.elements} elements; the limit is {MAX_BUFFER_ELEMENTS}.",
            field=buffer.key,
        )
    value = known.get((buffer.role, buffer.key))
    if value is None and buffer.role in ("scratch", "order", "losses", "result"):
        return
    if value is None:
        raise BadReference(f"The program has no {buffer.role} '{buffer.key}'.", field=buffer.key)
    shape = value.shape[1:] if buffer.role == "data" else value.shape
    wanted = max(Value(value.name, value.dtype, shape).elements, 1)
    if buffer.elements != wanted:
        raise SpecMismatch(
            f"The buffer of '{buffer.key}' has {buffer.elements} elements; the program says {wanted}.",
            field=buffer.key,
        )


def _check_kernel(kernel: CompiledKernel) -> None:
    if not _KERNEL_NAME.fullmatch(kernel.name):
        raise ProgramFormatError(f"'{kernel.name:.80}' is not the name of a kernel.")
    if not 1 <= kernel.lanes <= MAX_LANES or any(not 1 <= count <= MAX_GROUPS for count in kernel.groups):
        raise ProgramTooLarge(f"Kernel '{kernel.name}' asks for an impossible grid.", field=kernel.name)
    if len(kernel.writes) > MAX_STORAGE_BUFFERS or len(kernel.writes) != len(kernel.elements):
        raise ProgramTooLarge(
            f"Kernel '{kernel.name}' binds {len(kernel.writes)} buffers; the limit is {MAX_STORAGE_BUFFERS}.",
            field=kernel.name,
        )
    if kernel.estimated_us < 1:
        raise ProgramFormatError(f"Kernel '{kernel.name}' is said to take no time.", field=kernel.name)
    if max(len(text) for text in (kernel.wgsl, kernel.msl, kernel.msl_matrices)) > MAX_SOURCE_BYTES:
        raise ProgramTooLarge(f"The source of kernel '{kernel.name}' is too long.", field=kernel.name)


def _check_dispatch(dispatch: CompiledDispatch, compiled: CompiledProgram) -> None:
    if not 0 <= dispatch.kernel < len(compiled.kernels):
        raise BadReference("A dispatch names a kernel that does not exist.", field="dispatches")
    kernel = compiled.kernels[dispatch.kernel]
    if len(dispatch.buffers) != len(kernel.writes):
        raise SpecMismatch(
            f"A dispatch of kernel '{kernel.name}' binds too many or too few buffers.", field=kernel.name
        )
    if any(not 0 <= place < len(compiled.buffers) for place in dispatch.buffers):
        raise BadReference(
            f"A dispatch of kernel '{kernel.name}' names a buffer that does not exist.", field=kernel.name
        )
    for place, needed in zip(dispatch.buffers, kernel.elements, strict=True):
        if compiled.buffers[place].elements < needed:
            raise SpecMismatch(
                f"Kernel '{kernel.name}' would index past the end of a buffer of {compiled.buffers[place].elements} "
                f"elements; it needs {needed}.",
                field=kernel.name,
            )
