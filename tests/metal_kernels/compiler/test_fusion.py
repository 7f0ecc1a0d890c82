"""Fusion: how many dispatches a step takes, and what shares a kernel."""

import pytest
import torch
from torch import Tensor, nn

from metal_kernels.compiler.compile import compile_program
from metal_kernels.frontend.capture import capture_forward
from metal_kernels.ir.spec import MAX_STORAGE_BUFFERS
from metal_kernels.lowering.lower import lower
from metal_kernels.passes.group import group
from metal_kernels.passes.inline import inline
from metal_kernels.passes.split import SplitPolicy, split
from metal_kernels.program.graph import Program


def dispatches(module: nn.Module, *inputs: Tensor) -> int:
    program = capture_forward(module, example_inputs=list(inputs))
    return len(compile_program(program).compiled.dispatches)


class Views(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.reshape(4, 6).t().reshape(2, 3, 4).permute(2, 0, 1)[1:, :, ::2].flip(0) * 2


class Attention(nn.Module):
    def forward(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)


@pytest.mark.parametrize(
    ("module", "inputs", "count"),
    [
        (Views(), [torch.zeros(24)], 1),
        (nn.Softmax(dim=-1), [torch.zeros(8, 100)], 1),
        (nn.LayerNorm(64), [torch.zeros(8, 64)], 1),
        (nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 4), nn.Tanh()), [torch.zeros(2, 8)], 2),
        (nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU()), [torch.zeros(1, 1, 8, 8)], 2),
        (Attention(), [torch.zeros(1, 2, 8, 4)] * 3, 3),
    ],
    ids=["views", "softmax", "layer norm", "linear layers", "convolution", "attention"],
)
def test_a_chain_takes_as_few_dispatches_as_it_has_barriers(
    module: nn.Module, inputs: list[Tensor], count: int
) -> None:
    assert dispatches(module, *inputs) == count


def test_a_training_step_takes_a_fifth_of_its_operations(mlp_program: Program) -> None:
    compiled = compile_program(mlp_program).compiled
    assert len(compiled.dispatches) <= len(mlp_program.graph.nodes) / 5


def test_the_loss_and_its_gradient_are_one_kernel(mlp_program: Program) -> None:
    """Softmax, the loss of each row and the gradient of the logits: one pass over the logits' rows."""
    loops = inline(split(lower(mlp_program), SplitPolicy(lanes=0)))
    rows = [one for one in group(loops) if one.reduces and one.rows == 16 and one.elements == 160]
    assert max(len(one.members) for one in rows) >= 6


def test_optimizer_updates_share_the_kernel_of_their_gradient(mlp_program: Program) -> None:
    loops = inline(split(lower(mlp_program), SplitPolicy(lanes=0)))
    updated = set(loops.updates.values())
    for one in group(loops):
        if any(member.tensor.name in updated for member in one.members):
            assert len(one.members) > 2


def test_no_kernel_binds_more_buffers_than_webgpu_grants(cnn_program: Program) -> None:
    for kernel in compile_program(cnn_program).compiled.kernels:
        assert len(kernel.writes) <= MAX_STORAGE_BUFFERS


def test_state_is_replaced_in_place(mlp_program: Program, cnn_program: Program) -> None:
    for program in (mlp_program, cnn_program):
        assert compile_program(program).compiled.copies == []


def test_scratch_memory_is_reused(cnn_program: Program) -> None:
    """Values whose lives do not meet share buffers: less memory than one buffer for each value that is stored."""
    compiled = compile_program(cnn_program).compiled
    slots = [buffer for buffer in compiled.buffers if buffer.role == "scratch"]
    writes = sum(
        compiled.buffers[place].role == "scratch"
        for dispatch in compiled.dispatches
        for place, is_written in zip(dispatch.buffers, compiled.kernels[dispatch.kernel].writes, strict=True)
        if is_written
    )
    assert len(slots) < writes


def test_equal_layers_share_their_kernels() -> None:
    deep = nn.Sequential(*(nn.Linear(16, 16) for _ in range(6)))
    compiled = compile_program(capture_forward(deep, example_inputs=[torch.zeros(4, 16)])).compiled
    assert (len(compiled.dispatches), len(compiled.kernels)) == (6, 1)
