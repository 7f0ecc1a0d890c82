"""A GPU that goes away in the middle is one typed error, and the same process goes on with a new one."""

from typing import Any

import msgspec
import pytest
import torch

from metal_kernels.compiler.compile import compile_program
from metal_kernels.compiler.compiled import CompiledProgram
from metal_kernels.errors import DeviceLost, ProgramFormatError, RuntimeUnavailable
from metal_kernels.program.graph import Program
from metal_kernels.runtimes.compiled import CompiledRuntime, StepNumbers
from metal_kernels.runtimes.reference import State, initial_state
from metal_kernels.runtimes.wgpu import WgpuBackend, wgpu_device
from tests.metal_kernels.models import Mlp

ROWS = 16


@pytest.fixture(scope="module")
def compiled(mlp_program: Program) -> CompiledProgram:
    return compile_program(mlp_program, device="cpu").compiled


@pytest.fixture
def device() -> Any:
    """One of its own, as a test may destroy it."""
    try:
        return wgpu_device()
    except RuntimeUnavailable as missing:
        pytest.skip(missing.message)


def losses(runtime: CompiledRuntime, state: State) -> list[float]:
    generator = torch.Generator().manual_seed(1)
    return runtime.train(
        state,
        inputs=[torch.randn(ROWS, 64, generator=generator)],
        target=torch.arange(ROWS) % 10,
        order=[torch.arange(ROWS)] * 3,
        lr=lambda step: 0.1,
    ).losses


def test_a_device_lost_in_the_middle_names_the_submissions_kernels_and_a_new_one_does_the_work(
    mlp_program: Program, compiled: CompiledProgram, device: Any
) -> None:
    state = initial_state(Mlp(), mlp_program)
    backend = WgpuBackend(compiled, device)
    expected = losses(CompiledRuntime(mlp_program, compiled, backend), state)
    dying = WgpuBackend(
        compiled, device, clock=lambda: device.destroy() or 0.0
    )  # read as a submission begins
    for position, buffer in enumerate(compiled.buffers):
        dying.reserve(position, buffer.elements * ROWS)
    with pytest.raises(DeviceLost, match="while it ran kernels") as caught:
        dying.run([StepNumbers(0.1, 1.0, 0)])
    assert compiled.kernels[compiled.dispatches[0].kernel].name in caught.value.message
    assert caught.value.field is None  # which of them it was, nobody knows
    with pytest.raises(DeviceLost, match="between submissions"):
        backend.read(0, 1)
    again = WgpuBackend(compiled, wgpu_device())
    assert losses(CompiledRuntime(mlp_program, compiled, again), state) == expected


def test_a_kernel_that_the_driver_refuses_is_a_typed_error_with_its_name(
    compiled: CompiledProgram, device: Any
) -> None:
    broken = msgspec.structs.replace(compiled.kernels[1], wgsl="fn nothing() {")
    kernels = [compiled.kernels[0], broken, *compiled.kernels[2:]]
    with pytest.raises(ProgramFormatError, match="does not compile") as caught:
        WgpuBackend(msgspec.structs.replace(compiled, kernels=kernels), device)
    assert caught.value.field == broken.name


def test_memory_that_the_device_lacks_is_a_typed_error_and_the_device_goes_on(
    mlp_program: Program, compiled: CompiledProgram, device: Any
) -> None:
    backend = WgpuBackend(compiled, device)
    with pytest.raises(DeviceLost, match="smaller batch"):
        backend.reserve(0, 2**33)
    runtime = CompiledRuntime(mlp_program, compiled, WgpuBackend(compiled, device))
    assert len(losses(runtime, initial_state(Mlp(), mlp_program))) == 3
