"""The spec refuses kernels that could misbehave on a phone."""

import math
from dataclasses import replace

import pytest

from metal_kernels.errors import KernelIrError
from metal_kernels.ir.expr import Expr, apply, const, index_var, intern, local_var, memory
from metal_kernels.ir.kernel import Assign, Barrier, Buffer, For, If, Kernel, Let, Shared, Statement, Store
from metal_kernels.ir.scalars import Scalar
from metal_kernels.ir.spec import kernel_check

LANE = index_var("lane", 64)
LOADED = memory("load", "f32", "b0", LANE)
GOOD = Kernel(
    name="good",
    buffers=(Buffer("b0", "f32", 64, "read"), Buffer("b1", "f32", 64, "write")),
    uniforms=(),
    shared=(Shared("tile0", "f32", 64),),
    lanes=64,
    groups=(1, 1, 1),
    body=(Store("b1", LANE, LOADED + 1.0),),
)


def with_body(*body: Statement) -> Kernel:
    return replace(GOOD, body=body)


def test_a_well_formed_kernel_passes() -> None:
    kernel_check(GOOD)


def written(value: float, dtype: Scalar) -> Expr:
    """A constant as it stands, which `const` would not make."""
    return intern("const", dtype, value=value)


@pytest.mark.parametrize(
    ("kernel", "rule"),
    [
        (with_body(Store("b1", LANE + 1, LOADED)), r"may index 'b1' \(64 elements\) at 1..64"),
        (with_body(Store("b1", LANE - 1, LOADED)), "may index 'b1'"),
        (with_body(Store("b0", LANE, LOADED)), "writes to 'b0'"),
        (with_body(Store("b2", LANE, LOADED)), "writes to 'b2'"),
        (with_body(Store("b1", LANE, memory("load", "f32", "b1", LANE))), "reads from 'b1'"),
        (with_body(Store("b1", LANE, LANE)), "takes 'b1' for another dtype"),
        (with_body(Store("b1", LANE, local_var("v1", "f32"))), "uses 'v1' where it is not defined"),
        (
            with_body(Let(local_var("v1", "f32"), LOADED), Assign(local_var("v1", "f32"), LOADED)),
            "may not assign",
        ),
        (
            with_body(Store("b1", LANE, LOADED + written(math.nan, "f32"))),
            "the constant nan, which no f32 is",
        ),
        (with_body(Store("b1", LANE, LOADED + written(math.inf, "f32"))), "the constant inf"),
        (with_body(If(written(2**31, "i32") > LANE, ())), "the constant 2147483648, which no i32 is"),
        (with_body(If(LANE < 3, (Barrier(),))), "a barrier that not every lane reaches"),
        (with_body(For(index_var("i", 9), const(0, "i32"), const(9, "i32"), 0, ())), "never ends"),
        (with_body(For(index_var("i", 9), const(0, "i32"), const(12, "i32"), 1, ())), "outside its range"),
        (replace(GOOD, lanes=512), "has 512 lanes"),
        (replace(GOOD, groups=(70_000, 1, 1)), "has a grid of"),
        (replace(GOOD, shared=(Shared("tile0", "f32", 5000),)), "20000 bytes of workgroup memory"),
        (
            replace(GOOD, buffers=tuple(Buffer(f"b{n}", "f32", 64, "read_write") for n in range(9))),
            "binds 9 storage buffers",
        ),
    ],
)
def test_a_kernel_that_breaks_a_rule_is_refused(kernel: Kernel, rule: str) -> None:
    with pytest.raises(KernelIrError, match=rule):
        kernel_check(kernel)


def test_operands_of_the_wrong_type_are_refused_when_written() -> None:
    with pytest.raises(TypeError, match=r"add does not take \(f32, i32\)"):
        apply("add", LOADED, LANE)
