"""Compiled programs in the program's own file: for each device class one metadata entry for the step, and one for the
kernels that encode its delta.

A reader that knows nothing of kernels still finds its program there. Kernels were proven to stay inside buffers of
the sizes they declare (`ir/spec.py`); loading checks that every dispatch binds buffers at least so large.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from math import prod
from typing import Final, NamedTuple, TypeAlias

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
from metal_kernels.ir.scalars import StoredScalar
from metal_kernels.ir.spec import MAX_GROUPS, MAX_LANES, MAX_STORAGE_BUFFERS
from metal_kernels.passes.tiles import DeviceClass
from metal_kernels.program.format import program_dumps, program_loads
from metal_kernels.program.graph import STATE_ROLES, Kind, Program, Value
from metal_kernels.tensorfile import tensorfile_dumps, tensorfile_loads

MAX_DISPATCHES: Final = 20_000
MAX_SOURCE_BYTES: Final = 256 * 1024
MAX_BUFFER_ELEMENTS: Final = 2**28
MAX_LANES_OF_A_DISPATCH: Final = 2**32
"""Far more than any kernel of ours has; each side of a grid alone may be so long that a dispatch never ends."""
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
    result = ("losses", "") if program.kind == "training_step" else ("result", "predictions")
    _validate(compiled, program.kind, program.batch, _known_places(program), needed=[result])


def delta_validate(program: Program, compiled: CompiledProgram) -> None:
    """The same for the kernels that encode the program's delta."""
    known = _delta_places(program)
    _validate(compiled, "forward", 1, known, needed=[place for place in known if place[0] == "result"])


class _Place(NamedTuple):
    """What a buffer holds; None where its kernels alone know."""

    elements: int | None
    dtype: StoredScalar | None


_Places: TypeAlias = dict[tuple[str, str], _Place]
"""By role and key."""


def _validate(
    compiled: CompiledProgram, kind: Kind, batch: int, known: _Places, *, needed: Iterable[tuple[str, str]]
) -> None:
    if len(compiled.dispatches) > MAX_DISPATCHES:
        raise ProgramTooLarge(
            f"A step has {len(compiled.dispatches)} dispatches; the limit is {MAX_DISPATCHES}."
        )
    if compiled.kind != kind or compiled.batch != batch:
        raise ProgramFormatError("The kernels were compiled from another program.")
    for buffer in compiled.buffers:
        _check_buffer(buffer, known)
    _check_roles(compiled.buffers, needed)
    for kernel in compiled.kernels:
        _check_kernel(kernel)
    for dispatch in compiled.dispatches:
        _check_dispatch(dispatch, compiled)
    for source, target in compiled.copies:
        if any(not 0 <= place < len(compiled.buffers) for place in (source, target)):
            raise BadReference("A copy names a buffer that does not exist.", field="copies")
        if source == target or compiled.buffers[source].elements < compiled.buffers[target].elements:
            raise SpecMismatch("A copy does not fit its buffers.", field="copies")


def _known_places(program: Program) -> _Places:
    """What the buffers of a step hold."""
    known: _Places = {("constant", value.name): _place(value) for value in program.graph.constants}
    for entry in program.graph.inputs:
        role = "state" if entry.role in STATE_ROLES else "input"
        known[role, entry.key] = _place(entry.value)
        known["data", entry.key] = _place(entry.value, rows_apart=True)
    known["order", ""], known["losses", ""] = _Place(1, "i32"), _Place(1, "f32")
    known["result", "predictions"] = _ANYTHING
    return known


_ANYTHING: Final = _Place(None, None)


def _place(value: Value, *, rows_apart: bool = False) -> _Place:
    shape = value.shape[1:] if rows_apart else value.shape
    return _Place(max(prod(shape), 1), "f32" if value.dtype == "float32" else "i32")


def _delta_places(program: Program) -> _Places:
    """What the buffers of a delta's kernels hold: `compiler/delta.py` names them."""
    known: _Places = {}
    bits = program.delta_bits
    for name, value in program.model_spec.items():
        if value.dtype != "float32":
            continue
        blocks = -(-value.elements // BLOCK)
        for place in [("input", f"base/{name}"), ("input", f"new/{name}"), ("state", f"residual/{name}")]:
            known[place] = _place(value)
        known["result", f"scales/{name}"] = _Place(blocks, "f32")
        words = blocks * BLOCK * bits // (8 * BYTES_PER_ELEMENT)
        known["result", QUANTISED[bits] + name] = _Place(words, "u32")
    return known


def _check_buffer(buffer: CompiledBuffer, known: _Places) -> None:
    if not 1 <= buffer.elements <= MAX_BUFFER_ELEMENTS:
        raise ProgramTooLarge(
            f"A {buffer.role} buffer has {buffer.elements} elements; the limit is {MAX_BUFFER_ELEMENTS}.",
            field=buffer.key,
        )
    place = _ANYTHING if buffer.role == "scratch" else known.get((buffer.role, buffer.key))
    if place is None:
        raise BadReference(f"The program has no {buffer.role} '{buffer.key:.80}'.", field=buffer.key)
    if place.elements not in (None, buffer.elements) or place.dtype not in (None, buffer.dtype):
        raise SpecMismatch(
            f"The buffer of '{buffer.key}' has {buffer.elements} elements of {buffer.dtype}; the program says "
            f"{place.elements} of {place.dtype}.",
            field=buffer.key,
        )


def _check_roles(buffers: Sequence[CompiledBuffer], needed: Iterable[tuple[str, str]]) -> None:
    """Each tensor has one buffer at most, and the results have one."""
    places = [(buffer.role, buffer.key) for buffer in buffers if buffer.role != "scratch"]
    if len(set(places)) != len(places):
        raise BadReference("Two buffers hold the same tensor.", field="buffers")
    for role, key in needed:
        if (role, key) not in places:
            raise BadReference(f"No buffer holds the {role} '{key}'.", field=key or role)


def _check_kernel(kernel: CompiledKernel) -> None:
    if not _KERNEL_NAME.fullmatch(kernel.name):
        raise ProgramFormatError(f"'{kernel.name:.80}' is not the name of a kernel.")
    counts_fit = 1 <= kernel.lanes <= MAX_LANES and all(1 <= count <= MAX_GROUPS for count in kernel.groups)
    if not counts_fit or kernel.lanes * prod(kernel.groups) > MAX_LANES_OF_A_DISPATCH:
        raise ProgramTooLarge(f"Kernel '{kernel.name}' asks for an impossible grid.", field=kernel.name)
    if len(kernel.writes) > MAX_STORAGE_BUFFERS or len(kernel.writes) != len(kernel.elements):
        raise ProgramTooLarge(
            f"Kernel '{kernel.name}' binds {len(kernel.writes)} buffers; the limit is {MAX_STORAGE_BUFFERS}.",
            field=kernel.name,
        )
    if any(needed < 0 for needed in kernel.elements):
        raise ProgramFormatError(f"Kernel '{kernel.name}' touches less than nothing.", field=kernel.name)
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
    written = [place for place, writes in zip(dispatch.buffers, kernel.writes, strict=True) if writes]
    if any(dispatch.buffers.count(place) > 1 for place in written):
        raise SpecMismatch(
            f"A dispatch of kernel '{kernel.name}' binds a buffer that it writes twice.", field=kernel.name
        )
    for place, needed in zip(dispatch.buffers, kernel.elements, strict=True):
        if compiled.buffers[place].elements < needed:
            raise SpecMismatch(
                f"Kernel '{kernel.name}' would index past the end of a buffer of {compiled.buffers[place].elements} "
                f"elements; it needs {needed}.",
                field=kernel.name,
            )
