"""Static cost and memory, against numbers worked out by hand."""

import torch
from torch import nn

from metal_kernels.frontend.capture import capture_forward, capture_training_step
from metal_kernels.frontend.optimizers import Sgd
from metal_kernels.program.cost import program_cost
from metal_kernels.program.graph import Program
from metal_kernels.program.memory import program_memory


def test_the_cost_of_a_linear_layer_is_that_of_its_matrix_product():
    program = capture_forward(nn.Linear(64, 10), example_inputs=[torch.zeros(16, 64)])
    cost = program_cost(program)
    product = cost.by_op["aten.addmm.default"]
    assert product.flops == 2 * 16 * 64 * 10 + 16 * 10
    assert product.bytes == 4 * (16 * 64 + 64 * 10 + 10 + 16 * 10)
    assert (cost.flops, cost.bytes, cost.dispatches) == (product.flops, product.bytes, 1)
    assert cost.by_op["aten.permute.default"].bytes == 0


def test_the_cost_of_a_convolution_counts_each_weight_at_each_output():
    module = nn.Conv2d(4, 8, 3, groups=2)
    program = capture_forward(module, example_inputs=[torch.zeros(2, 4, 8, 8)])
    assert program_cost(program).flops == 2 * (8 * 2 * 3 * 3) * (2 * 6 * 6) + 2 * 8 * 6 * 6


def test_the_cost_of_a_transposed_convolution_counts_each_weight_at_each_input():
    module = nn.ConvTranspose2d(4, 3, 2, 2, bias=False)
    program = capture_forward(module, example_inputs=[torch.zeros(2, 4, 8, 8)])
    assert program_cost(program).flops == 2 * (4 * 3 * 2 * 2) * (2 * 8 * 8)


def test_the_backward_pass_of_a_convolution_costs_two_more():
    module = nn.Sequential(nn.Conv2d(1, 4, 3, bias=False), nn.Conv2d(4, 4, 3, bias=False))
    program = capture_training_step(
        module,
        loss="mse",
        optimizer=Sgd(),
        example_inputs=[torch.zeros(2, 1, 8, 8)],
        example_target=torch.zeros(2, 4, 4, 4),
    )
    by_op = program_cost(program).by_op
    first, second = 2 * 36 * (2 * 6 * 6), 2 * 144 * (2 * 4 * 4)
    assert by_op["aten.convolution.default"].flops == first + second
    assert by_op["aten.convolution_backward.default"].flops == first + 2 * second  # none for the images


def test_an_embedding_reads_the_rows_it_picks_and_not_its_table():
    program = capture_forward(nn.Embedding(10_000, 8), example_inputs=[torch.zeros(4, dtype=torch.int64)])
    assert program_cost(program).bytes == 2 * 4 * 8 * 4


def test_a_training_step_adds_a_product_for_each_weight_and_each_inner_layer(mlp_program, mlp_forward):
    def products(program: Program) -> int:
        by_op = program_cost(program).by_op
        return sum(
            cost.flops for op, cost in by_op.items() if op in ("aten.mm.default", "aten.addmm.default")
        )

    for_weights = 2 * 16 * (64 * 32 + 32 * 32 + 32 * 10)
    for_inputs = 2 * 16 * (32 * 32 + 32 * 10)  # none for the images
    assert products(mlp_program) == products(mlp_forward) + for_weights + for_inputs


def test_memory_counts_state_batch_and_the_values_alive_at_once():
    module = nn.Sequential(nn.Linear(8, 8, bias=False), nn.ReLU(), nn.ReLU(), nn.ReLU())
    memory = program_memory(capture_forward(module, example_inputs=[torch.zeros(16, 8)]))
    assert memory.state_bytes == 4 * 64
    assert memory.batch_bytes == 4 * 128
    activations = 2 * 4 * 128  # one layer's input and its output
    assert memory.peak_bytes == memory.state_bytes + memory.batch_bytes + activations


def test_memory_counts_optimizer_slots_as_state(mlp_program):
    model_bytes = sum(value.size_bytes for value in mlp_program.model_spec.values())
    assert program_memory(mlp_program).state_bytes == 2 * model_bytes
