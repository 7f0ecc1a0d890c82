"""What cannot be compiled or run is one clear typed error."""

import pytest
import torch
from torch import Tensor, nn

from metal_kernels.compiler.compile import compile_program
from metal_kernels.errors import BadFeed, RuntimeUnavailable, UncompiledOp
from metal_kernels.frontend.capture import capture_forward
from metal_kernels.program.graph import Program
from metal_kernels.runtimes import wgpu
from metal_kernels.runtimes.compiled import CompiledRuntime
from metal_kernels.runtimes.interpreter import InterpreterBackend
from metal_kernels.runtimes.metal import MetalBackend
from metal_kernels.runtimes.reference import initial_state
from tests.metal_kernels.models import Mlp


class WholeRemainder(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x % 3


def test_an_operation_without_a_rule_is_named_with_its_node() -> None:
    program = capture_forward(WholeRemainder(), example_inputs=[torch.arange(5)])
    with pytest.raises(UncompiledOp, match=r"Node 'v0': aten\.remainder\.Scalar works on integers") as caught:
        compile_program(program)
    assert caught.value.field == "v0"


@pytest.fixture
def runtime(mlp_program: Program) -> CompiledRuntime:
    compilation = compile_program(mlp_program)
    return CompiledRuntime(mlp_program, compilation.compiled, InterpreterBackend(compilation))


def train(runtime: CompiledRuntime, program: Program, *, target: Tensor, order: list[Tensor]) -> None:
    state = initial_state(Mlp(), program)
    runtime.train(state, inputs=[torch.zeros(20, 64)], target=target, order=order, lr=lambda step: 0.1)


def test_rows_beyond_the_slice_are_refused(runtime: CompiledRuntime, mlp_program: Program) -> None:
    target = torch.zeros(20, dtype=torch.int64)
    for order in ([torch.arange(5, 21)], [torch.arange(-1, 15)], [torch.arange(3)]):
        with pytest.raises(BadFeed, match="16 row indices from 0 to 19"):
            train(runtime, mlp_program, target=target, order=order)


def test_integers_beyond_32_bits_are_refused(runtime: CompiledRuntime, mlp_program: Program) -> None:
    with pytest.raises(BadFeed, match="'target' has integers beyond 32 bits"):
        train(runtime, mlp_program, target=torch.full((20,), 2**40), order=[torch.arange(16)])


def test_missing_state_is_named(runtime: CompiledRuntime) -> None:
    with pytest.raises(BadFeed, match=r"The state lacks '0\.weight'"):
        runtime.train({}, inputs=[], target=torch.zeros(20), order=[torch.arange(16)], lr=lambda step: 0.1)


def test_a_machine_without_the_package_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wgpu, "wgpu", None)
    with pytest.raises(RuntimeUnavailable, match=r"install nightshift\[gpu\]"):
        wgpu.wgpu_device()


@pytest.mark.skipif(torch.backends.mps.is_available(), reason="this machine has Metal")
def test_a_machine_without_metal_is_told_so(mlp_program: Program) -> None:
    with pytest.raises(RuntimeUnavailable, match="no Metal GPU"):
        MetalBackend(compile_program(mlp_program).compiled)
