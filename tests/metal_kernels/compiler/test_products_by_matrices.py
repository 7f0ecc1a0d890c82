"""Where simdgroups multiply matrices, products come out as they do without, whatever their shape."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from marketplace.catalogue import specs
from metal_kernels.compiler.compile import Compilation, compile_program
from metal_kernels.errors import KernelIrError
from metal_kernels.frontend.capture import capture_forward
from metal_kernels.ir.expr import const, index_var
from metal_kernels.ir.kernel import (
    For,
    If,
    Kernel,
    MatrixLoad,
    MatrixMultiply,
    MatrixStore,
    MatrixZero,
    Shared,
    Statement,
)
from metal_kernels.ir.spec import MAX_SHARED_BYTES, kernel_check
from metal_kernels.passes.matrix_product import blocks_of
from metal_kernels.passes.tiles import DeviceClass, ProductShape, Tile, tile_for
from metal_kernels.runtimes.compiled import CompiledRuntime
from tests.metal_kernels.backends import WITH_MATRICES
from tests.metal_kernels.compiler.test_networks_train_as_torch_does import SGD, catalogue, classes, numbers
from tests.metal_kernels.eager import (
    STEPS,
    Case,
    assert_same_losses,
    assert_same_state,
    learning_rate,
    train_eagerly,
)

SIMDGROUP, LANE = index_var("simdgroup", 2), index_var("lane", 64)


class Product(nn.Module):
    """A product with what may follow one."""

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        return torch.relu(a @ b) * 0.5


class Transposed(nn.Module):
    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        return a.transpose(-1, -2) @ b.transpose(-1, -2)


def convolved(x: Tensor, weight: Tensor) -> Tensor:
    return nn.functional.conv2d(x, weight, padding=1, stride=2, groups=2)


class Convolution(nn.Module):
    def forward(self, x: Tensor, weight: Tensor) -> Tensor:
        return convolved(x, weight)


PRODUCTS: dict[str, tuple[nn.Module, tuple[Tensor, Tensor]]] = {
    "one element": (Product(), (torch.randn(1, 1), torch.randn(1, 1))),
    "whole tiles": (Product(), (torch.randn(64, 32), torch.randn(32, 64))),
    "odd in every direction": (Product(), (torch.randn(37, 19), torch.randn(19, 45))),
    "few columns": (Product(), (torch.randn(70, 33), torch.randn(33, 3))),
    "larger than a workgroup of a desktop": (Product(), (torch.randn(300, 9), torch.randn(9, 290))),
    "batched": (Product(), (torch.randn(3, 20, 17), torch.randn(3, 17, 40))),
    "transposed": (Transposed(), (torch.randn(2, 24, 35), torch.randn(2, 18, 24))),
    "convolution": (Convolution(), (torch.randn(2, 6, 9, 11), torch.randn(8, 3, 3, 3))),
}


@pytest.mark.parametrize("device", ["phone", "desktop"])
@pytest.mark.parametrize("backend", WITH_MATRICES)
@pytest.mark.parametrize("name", PRODUCTS)
def test_a_product_is_torchs(name: str, backend: str, device: DeviceClass) -> None:
    module, operands = PRODUCTS[name]
    program = capture_forward(module, example_inputs=operands)
    compilation = compile_program(program, device=device)
    assert_uses_matrices(compilation)
    runtime = CompiledRuntime(program, compilation.compiled, WITH_MATRICES[backend](compilation))
    found = runtime.predict({}, *operands)
    torch.testing.assert_close(torch.as_tensor(found), module(*operands), rtol=1e-5, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(
    "case",
    [
        Case(catalogue(specs.Mlp(hidden=(24, 16)), 9, outputs=4), numbers(9), classes(4), "cross_entropy", *SGD),
        Case(
            catalogue(specs.Cnn(image=(1, 8, 8), channels=(4, 8)), 64, outputs=4),
            numbers(64), classes(4), "cross_entropy", *SGD,
        ),
    ],
    ids=["mlp", "cnn"],
)  # fmt: skip
def test_a_network_trains_as_torch_trains_it(case: Case) -> None:
    trained = train_eagerly(case, steps=STEPS)
    compilation = compile_program(trained.program, device="phone")
    assert_uses_matrices(compilation)
    runtime = CompiledRuntime(trained.program, compilation.compiled, WITH_MATRICES["msl"](compilation))
    run = runtime.train(
        trained.state, inputs=[trained.inputs], target=trained.target, order=trained.order, lr=learning_rate
    )
    assert_same_losses(run, trained)
    assert_same_state(run, trained)


def assert_uses_matrices(compilation: Compilation) -> None:
    texts = [kernel.msl_matrices for kernel in compilation.compiled.kernels if kernel.msl_matrices]
    assert texts
    assert all("simdgroup_multiply_accumulate" in text for text in texts)


def test_a_software_adapter_gets_no_such_kernels() -> None:
    module, operands = PRODUCTS["whole tiles"]
    compiled = compile_program(capture_forward(module, example_inputs=operands), device="cpu").compiled
    assert [kernel.msl_matrices for kernel in compiled.kernels] == [""]


@pytest.mark.parametrize("device", ["phone", "desktop"])
@pytest.mark.parametrize("extents", [(1, 1024, 1024, 64), (1, 1024, 10, 64), (1, 64, 64, 64), (8, 5, 7, 3)])
def test_the_simdgroups_of_every_tile_of_the_table_share_all_its_results(
    device: DeviceClass, extents: tuple[int, int, int, int]
) -> None:
    tile = tile_for(device, ProductShape(extents))
    blocks = blocks_of(tile)
    assert blocks is not None
    assert blocks.rows * blocks.columns * 64 * (tile.lanes // 32) == tile.group_rows * tile.group_columns
    assert tile.shared_elements * 4 <= MAX_SHARED_BYTES


@pytest.mark.parametrize(
    "tile",
    [
        Tile(4, 4, 8, 8, 16, staged=False),
        Tile(4, 4, 8, 4, 12, staged=True),
        Tile(3, 4, 4, 8, 16, staged=True),
        Tile(4, 4, 4, 4, 16, staged=True),
    ],
    ids=["not staged", "a depth of no whole matrices", "rows of no whole matrices", "half a simdgroup"],
)
def test_a_tile_that_does_not_come_apart_into_matrices_is_computed_without(tile: Tile) -> None:
    assert blocks_of(tile) is None


GOOD: tuple[Statement, ...] = (
    MatrixZero("m1"),
    MatrixLoad("m2", "tile0", SIMDGROUP * 64, 8),
    MatrixMultiply("m1", "m2", "m2"),
    MatrixStore("m1", "tile0", SIMDGROUP * 64, 8),
)


def with_body(*body: Statement) -> Kernel:
    return Kernel("good", (), (), (Shared("tile0", "f32", 128),), 64, (1, 1, 1), body)


def test_a_kernel_that_handles_matrices_alike_in_all_lanes_passes() -> None:
    kernel_check(with_body(*GOOD))


@pytest.mark.parametrize(
    ("kernel", "rule"),
    [
        (with_body(MatrixStore("m1", "tile0", SIMDGROUP, 8)), "uses the matrix 'm1' where it is not defined"),
        (
            with_body(
                For(index_var("i", 2), const(0, "i32"), const(2, "i32"), 1, (MatrixZero("m1"),)),
                MatrixMultiply("m1", "m1", "m1"),
            ),
            "uses the matrix 'm1'",
        ),
        (with_body(MatrixZero("m1"), MatrixZero("m1")), "defines the matrix 'm1' twice"),
        (with_body(If(LANE < 3, (MatrixZero("m1"),))), "a matrix that not every lane reaches"),
        (replace(with_body(MatrixZero("m1")), lanes=48), "a matrix that not every lane reaches"),
        (with_body(MatrixLoad("m1", "tile0", LANE, 8)), "where lanes of a simdgroup differ"),
        (with_body(MatrixLoad("m1", "tile0", SIMDGROUP * 65, 8)), "may place a matrix outside 'tile0'"),
        (with_body(MatrixLoad("m1", "tile0", SIMDGROUP * 64, 9)), "may place a matrix outside 'tile0'"),
        (with_body(MatrixLoad("m1", "tile1", SIMDGROUP, 8)), "undeclared workgroup array 'tile1'"),
    ],
)
def test_a_kernel_that_breaks_a_rule_of_matrices_is_refused(kernel: Kernel, rule: str) -> None:
    with pytest.raises(KernelIrError, match=rule):
        kernel_check(kernel)
