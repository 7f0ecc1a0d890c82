"""A program as one file of bytes.

A safetensors file: its metadata holds `format`, `version`, the graph as JSON in `graph`, and `delta_bits` where
the delta is not of 8 bits; its tensors are the constants. Equal programs give equal bytes, so a program is
addressed by its SHA-256. `docs/programs.md` specifies the file for readers in other languages.
"""

import hashlib
from typing import Final

import msgspec

from metal_kernels.errors import ProgramFormatError, ProgramHashMismatch, ProgramTooLarge, TensorFileError
from metal_kernels.program.graph import DeltaBits, Graph, Program
from metal_kernels.program.validate import DEFAULT_LIMITS, Limits, program_validate
from metal_kernels.tensorfile import tensorfile_dumps, tensorfile_loads

FORMAT: Final = "nightshift.program"
VERSION: Final = "1"

_encoder: Final = msgspec.json.Encoder(order="deterministic")
_decoder: Final = msgspec.json.Decoder(Graph)


def program_dumps(program: Program) -> bytes:
    metadata = {"format": FORMAT, "version": VERSION, "graph": _encoder.encode(program.graph).decode()}
    if program.delta_bits != 8:
        metadata["delta_bits"] = str(program.delta_bits)
    return tensorfile_dumps(program.constants, metadata=metadata)


def program_sha256(data: bytes) -> str:
    """The address of a program: the lower-case hex SHA-256 of its bytes."""
    return hashlib.sha256(data).hexdigest()


def program_loads(
    data: bytes, *, limits: Limits = DEFAULT_LIMITS, expected_sha256: str | None = None
) -> Program:
    """Parse and validate; raise a `ProgramError` if anything is wrong.

    What this returns can be run: every operation is allow-listed, every shape and dtype follows, every limit
    holds.
    """
    if len(data) > limits.file_bytes:
        raise ProgramTooLarge(f"The program has {len(data)} bytes; the limit is {limits.file_bytes}.")
    if expected_sha256 is not None and program_sha256(data) != expected_sha256:
        raise ProgramHashMismatch("The program's bytes do not have the expected SHA-256; fetch it again.")
    try:
        file = tensorfile_loads(data)
    except TensorFileError as error:
        raise ProgramFormatError(error.message, field=error.field) from error
    if file.metadata.get("format") != FORMAT:
        raise ProgramFormatError(f"The file is not a program: its metadata lacks the format '{FORMAT}'.")
    if file.metadata.get("version") != VERSION:
        found = file.metadata.get("version")
        raise ProgramFormatError(f"The program has version {found!r}; this reader knows version {VERSION}.")
    try:
        graph = _decoder.decode(file.metadata.get("graph", ""))
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise ProgramFormatError(f"The program's graph is malformed: {error}.") from error
    program = Program(graph, file.tensors, _delta_bits(file.metadata.get("delta_bits")))
    program_validate(program, limits=limits)
    return program


def _delta_bits(text: str | None) -> DeltaBits:
    """Left out for 8, so that a program has one file."""
    if text is None:
        return 8
    if text != "4":
        raise ProgramFormatError(
            f"The program asks for deltas of {text[:20]!r} bits; this reader knows 4 and 8."
        )
    return 4
