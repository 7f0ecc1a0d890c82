"""Neighbouring loads become one load of four elements where the index's remainder by four is known."""

import torch
from torch import nn

from metal_kernels.compiler.compile import compile_program
from metal_kernels.frontend.capture import capture_forward
from metal_kernels.ir.expr import Expr, const, index_var, local_var, memory
from metal_kernels.ir.kernel import Assign, Buffer, Declare, Kernel, Let, Statement, Store
from metal_kernels.ir.spec import kernel_check
from metal_kernels.passes.vectorise import vectorise

LANE = index_var("lane", 16)
PLACE = local_var("v1", "i32", (0, 60))
OTHER = local_var("v2", "i32", (0, 60))
TURN = local_var("v3", "i32", (0, 15))


def loaded(index: Expr) -> Store:
    return Store("b1", LANE, memory("load", "f32", "b0", index))


def kernel(*body: Statement) -> Kernel:
    buffers = (Buffer("b0", "f32", 64, "read"), Buffer("b1", "f32", 16, "write"))
    return Kernel("k", buffers, (), (), 16, (1, 1, 1), body)


def vector_loads(one: Kernel) -> int:
    kernel_check(one)
    return sum(isinstance(part, Let) and part.value.op == "load4" for part in one.body)


def test_an_index_is_known_through_the_local_that_holds_it() -> None:
    made = vectorise(kernel(Let(PLACE, LANE * 4), loaded(PLACE), loaded(PLACE + 3)))
    assert made.buffers[0].vector
    assert vector_loads(made) == 1


def test_locals_that_stand_for_the_same_index_share_a_vector() -> None:
    body = (Let(PLACE, LANE * 4), loaded(PLACE), Let(OTHER, LANE * 4), loaded(OTHER + 1))
    made = vectorise(kernel(*body))
    assert vector_loads(made) == 1


def test_loads_before_and_after_a_variable_changes_share_nothing() -> None:
    """Both locals are four times the variable, which is another by then."""
    body = (
        Declare(TURN, const(0, "i32")), Let(PLACE, TURN * 4), loaded(PLACE), loaded(PLACE + 1),
        Assign(TURN, LANE), Let(OTHER, TURN * 4), loaded(OTHER), loaded(OTHER + 1),
    )  # fmt: skip
    assert vector_loads(vectorise(kernel(*body))) == 0


def test_an_unknown_remainder_leaves_scalar_loads() -> None:
    made = vectorise(kernel(Let(PLACE, LANE * 3), loaded(PLACE), loaded(PLACE + 1)))
    assert not made.buffers[0].vector


def test_both_operands_of_a_product_are_read_by_vectors() -> None:
    program = capture_forward(nn.Linear(64, 32), example_inputs=[torch.zeros(16, 64)])
    [made] = compile_program(program, device="cpu").kernels.values()
    assert [buffer.vector for buffer in made.buffers if buffer.access == "read"] == [True, True, True]
