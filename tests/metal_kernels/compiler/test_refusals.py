"""What cannot be compiled or run is one clear typed error."""

import pytest
import torch
from torch import Tensor, nn

from metal_kernels.compiler.compile import compile_program
from metal_kernels.errors import BadFeed, RuntimeUnavailable, UncompiledOp, UnsupportedOp
from metal_kernels.frontend.capture import capture_forward
from metal_kernels.program.graph import Argument, Graph, Input, Node, Output, Program, Ref, Value
from metal_kernels.program.validate import program_validate
from metal_kernels.runtimes import wgpu
from metal_kernels.runtimes.compiled import CompiledRuntime
from metal_kernels.runtimes.interpreter import InterpreterBackend
from metal_kernels.runtimes.metal import MetalBackend
from metal_kernels.runtimes.reference import initial_state
from tests.metal_kernels.models import Mlp

VOLUME = Value("in0", "float32", (1, 1, 4, 4, 4))
CONVOLUTION: dict[str, Argument] = {
    "input": Ref("in0"), "weight": Ref("in0"), "bias": None, "stride": [1, 1, 1], "padding": [0, 0, 0],
    "dilation": [1, 1, 1], "transposed": False, "output_padding": [0, 0, 0], "groups": 1,
}  # fmt: skip


def test_an_operation_without_a_rule_is_named_with_its_node() -> None:
    node = Node("aten.convolution.default", CONVOLUTION, [Value("v0", "float32", (1, 1, 1, 1, 1))])
    graph = Graph(
        "forward",
        [Input("input", "input0", VOLUME)],
        [],
        [node],
        [Output("predictions", "predictions", "v0")],
    )
    program_validate(Program(graph))
    with pytest.raises(UncompiledOp, match=r"Node 'v0': aten\.convolution\.default has three dim") as caught:
        compile_program(Program(graph))
    assert caught.value.field == "v0"


class Volumes(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Conv3d(1, 1, 3)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.inner(x)
        return y


@pytest.mark.parametrize(
    ("module", "rows", "words"),
    [
        (
            Volumes(),
            torch.zeros(1, 1, 4, 4, 4),
            r"aten\.convolution.*submodule 'inner'.*one or two dimensions",
        ),
        (nn.EmbeddingBag(5, 2), torch.zeros(2, 3, dtype=torch.int64), r"use nn\.Embedding and a mean"),
        (nn.AdaptiveMaxPool2d(3), torch.zeros(1, 1, 4, 4), "sizes that divide the image"),
        (nn.AvgPool3d(2), torch.zeros(1, 1, 4, 4, 4), "pool in two dimensions"),
    ],
)
def test_what_no_phone_can_run_is_refused_at_capture_with_what_to_use_instead(
    module: nn.Module, rows: Tensor, words: str
) -> None:
    with pytest.raises(UnsupportedOp, match=words):
        capture_forward(module, example_inputs=[rows])


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
