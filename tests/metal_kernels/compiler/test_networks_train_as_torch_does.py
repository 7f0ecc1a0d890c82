"""Twenty steps of networks that people train: the catalogue's, a ResNet, recurrent ones, attention over padding."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from marketplace.catalogue import specs
from marketplace.catalogue.builder import build
from metal_kernels.compiler.compile import compile_program
from metal_kernels.frontend.optimizers import Adam, AdamW, OptimizerSpec, Sgd
from metal_kernels.runtimes.compiled import CompiledRuntime
from tests.metal_kernels.backends import BACKENDS, DEVICES
from tests.metal_kernels.eager import (
    ROWS,
    STEPS,
    Case,
    assert_same_losses,
    assert_same_state,
    learning_rate,
    train_eagerly,
)
from tests.metal_kernels.networks import Generator, PaddedAttention, Recurrent, ResNet18

EagerOptimizer = Callable[[list[nn.Parameter]], torch.optim.Optimizer]
SGD: tuple[OptimizerSpec, EagerOptimizer] = (
    Sgd(momentum=0.9), lambda parameters: torch.optim.SGD(parameters, momentum=0.9)
)  # fmt: skip
ADAM: tuple[OptimizerSpec, EagerOptimizer] = (
    Adam(eps=1e-3), lambda parameters: torch.optim.Adam(parameters, eps=1e-3)
)  # fmt: skip
ADAMW: tuple[OptimizerSpec, EagerOptimizer] = (
    AdamW(eps=1e-3), lambda parameters: torch.optim.AdamW(parameters, eps=1e-3)
)  # fmt: skip


def classes(count: int, *shape: int) -> Callable[[], Tensor]:
    return lambda: torch.randint(count, (ROWS, *shape))


def numbers(*shape: int) -> Callable[[], Tensor]:
    return lambda: torch.randn(ROWS, *shape)


def padded_tokens() -> Tensor:
    tokens = torch.randint(1, 19, (ROWS, 7))
    return tokens.masked_fill(torch.arange(7) >= torch.randint(3, 8, (ROWS, 1)), 0)


def catalogue(spec: specs.ModelSpec, *input_shape: int, outputs: int) -> Callable[[], nn.Module]:
    return lambda: build(spec, input_shape=input_shape, outputs=outputs, seed=1)


GPT = specs.Gpt(vocabulary=21, context=8, width=16, layers=2, heads=2)
CASES = {
    "catalogue mlp": Case(
        catalogue(specs.Mlp(hidden=(24, 16), activation="silu"), 9, outputs=4),
        numbers(9), classes(4), "cross_entropy", *SGD,
    ),
    "catalogue cnn": Case(
        catalogue(specs.Cnn(image=(1, 8, 8), channels=(4, 8)), 64, outputs=4),
        numbers(64), classes(4), "cross_entropy", *SGD,
    ),
    "catalogue gpt": Case(
        catalogue(GPT, 8, outputs=21), classes(21, 8), classes(21, 8), "cross_entropy", *ADAMW
    ),
    "lstm": Case(lambda: Recurrent(nn.LSTM), classes(23, 6), classes(5), "cross_entropy", *ADAM),
    "gru": Case(lambda: Recurrent(nn.GRU), classes(23, 6), classes(5), "cross_entropy", *ADAM),
    "padded attention": Case(PaddedAttention, padded_tokens, classes(19, 7), "cross_entropy", *SGD),
    "generator": Case(Generator, numbers(12), numbers(1, 13, 13), "mse", *SGD),
    "resnet": Case(
        ResNet18, lambda: torch.randn(6, 3, 32, 32), lambda: torch.randint(10, (6,)), "cross_entropy", *SGD, batch=2
    ),
}  # fmt: skip
# Those whose kernels take a software adapter, or a C++ compiler, minutes to make ready.
LONG = {
    ("resnet", "wgpu"), ("resnet", "msl"), ("gru", "wgpu"), ("gru", "msl"), ("lstm", "msl"), ("catalogue gpt", "msl"),
    ("padded attention", "wgpu"), ("padded attention", "msl"),
}  # fmt: skip

# A bound on hanging, not on slowness: making a hundred pipelines in software takes long on a busy machine.
pytestmark = pytest.mark.timeout(900)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "backend"),
    [
        pytest.param(name, backend, marks=[pytest.mark.exhaustive] * ((name, backend) in LONG))
        for name in CASES
        for backend in ("wgpu", "msl")
    ],
)
def test_a_network_trains_as_torch_trains_it(name: str, backend: str) -> None:
    device = DEVICES[backend]
    trained = train_eagerly(CASES[name], steps=STEPS)
    compilation = compile_program(trained.program, device=device)
    run = CompiledRuntime(trained.program, compilation.compiled, BACKENDS[backend](compilation)).train(
        trained.state, inputs=[trained.inputs], target=trained.target, order=trained.order, lr=learning_rate
    )
    assert_same_losses(run, trained)
    assert_same_state(run, trained)
