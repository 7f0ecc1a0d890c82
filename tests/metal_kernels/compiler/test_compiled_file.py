"""A compiled program travels in its program's file, and a file that is wrong is refused before any GPU work."""

import contextlib

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metal_kernels.compiler.compile import compile_program
from metal_kernels.compiler.compiled import CompiledProgram
from metal_kernels.compiler.delta import compile_delta
from metal_kernels.compiler.format import (
    compiled_dumps,
    compiled_loads,
    compiled_validate,
    delta_loads,
    delta_validate,
)
from metal_kernels.compiler.limits import IOS_SAFARI, DeviceLimits, check_fits
from metal_kernels.errors import (
    DeviceLimitExceeded,
    ProgramError,
    ProgramFormatError,
    ProgramHashMismatch,
    SpecMismatch,
)
from metal_kernels.program.format import program_loads
from metal_kernels.program.graph import Program
from tests.metal_kernels.hostile import DEVICE, HOSTILE


@pytest.fixture(scope="module")
def compiled(mlp_program: Program) -> CompiledProgram:
    return compile_program(mlp_program).compiled


@pytest.fixture(scope="module")
def file(mlp_program: Program, compiled: CompiledProgram) -> bytes:
    return compiled_dumps(mlp_program, {"phone": compiled})


def test_a_compiled_program_comes_back_as_it_was(
    file: bytes, mlp_program: Program, compiled: CompiledProgram
) -> None:
    program, loaded = compiled_loads(file, "phone")
    assert loaded == compiled
    assert program.graph == mlp_program.graph


def test_a_reader_without_kernels_still_finds_the_program(file: bytes, mlp_program: Program) -> None:
    assert program_loads(file).graph == mlp_program.graph


def test_compiling_again_gives_the_same_bytes(file: bytes, mlp_program: Program) -> None:
    again = compile_program(mlp_program).compiled
    assert compiled_dumps(mlp_program, {"phone": again}) == file


def test_a_missing_variant_is_named(file: bytes) -> None:
    with pytest.raises(ProgramFormatError, match="'desktop'"):
        compiled_loads(file, "desktop")


def test_a_wrong_hash_is_refused(file: bytes) -> None:
    with pytest.raises(ProgramHashMismatch):
        compiled_loads(file, "phone", expected_sha256="0" * 64)


def verdict(file: bytes) -> str | None:
    """The code of the error, if the file's program or one of its kernels is wrong."""
    try:
        compiled_loads(file, DEVICE)
        delta_loads(file, DEVICE)
    except ProgramError as error:
        return error.code
    return None


@pytest.mark.parametrize("name", HOSTILE)
def test_a_file_that_is_wrong_is_refused_with_its_code(name: str) -> None:
    assert verdict(HOSTILE[name].file) == HOSTILE[name].code


def test_the_kernels_of_the_delta_are_in_the_file_and_checked(
    mlp_program: Program, compiled: CompiledProgram
) -> None:
    delta = compile_delta(mlp_program.model_spec, device="phone").compiled
    file = compiled_dumps(mlp_program, {"phone": compiled}, {"phone": delta})
    assert delta_loads(file, "phone") == delta
    assert delta_loads(file, "cpu") is None
    assert compiled_loads(file, "phone")[1] == compiled
    for change, error in [
        (lambda one: _with_results_of(one, 1), SpecMismatch),
        (lambda one: msgspec.structs.replace(one, kind="training_step"), ProgramFormatError),
    ]:
        with pytest.raises(error):
            delta_validate(mlp_program, change(delta))
    with pytest.raises(ProgramFormatError):
        compiled_validate(mlp_program, delta)


def _with_results_of(compiled: CompiledProgram, elements: int) -> CompiledProgram:
    buffers = [
        msgspec.structs.replace(buffer, elements=elements) if buffer.role == "result" else buffer
        for buffer in compiled.buffers
    ]
    return msgspec.structs.replace(compiled, buffers=buffers)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_damaged_file_raises_nothing_but_a_program_error(file: bytes, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(file) - 1))
    value = data.draw(st.integers(0, 255))
    damaged = file[:place] + bytes([value]) + file[place + 1 :] if data.draw(st.booleans()) else file[:place]
    with contextlib.suppress(ProgramError):
        compiled_loads(damaged, "phone")


def test_memory_is_known_before_a_run(compiled: CompiledProgram) -> None:
    for_one_row = compiled.peak_bytes(rows=1, steps=1)
    assert compiled.peak_bytes(rows=11, steps=1) == for_one_row + 10 * 4 * (64 + 1)
    assert compiled.peak_bytes(rows=1, steps=3) == for_one_row + 2 * 4 * (16 + 1)
    check_fits(compiled, IOS_SAFARI, rows=1000, steps=100)


def test_a_slice_that_does_not_fit_is_refused_with_the_figure(compiled: CompiledProgram) -> None:
    with pytest.raises(DeviceLimitExceeded, match=str(compiled.peak_bytes(rows=100_000_000, steps=1))):
        check_fits(compiled, IOS_SAFARI, rows=100_000_000, steps=1)
    with pytest.raises(DeviceLimitExceeded, match="data buffer 'input0' takes 2560000 bytes"):
        check_fits(compiled, DeviceLimits(buffer_bytes=2**20, total_bytes=2**30), rows=10_000, steps=1)
