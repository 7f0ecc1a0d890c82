"""Twenty compiled training steps give the losses and the state that torch gives, on every backend."""

import pytest
import torch

from metal_kernels.compiler.compile import Compilation, compile_program
from metal_kernels.frontend.optimizers import AdamW, Sgd
from metal_kernels.passes.tiles import DeviceClass
from metal_kernels.runtimes.compiled import CompiledRuntime
from tests.metal_kernels.backends import BACKENDS
from tests.metal_kernels.eager import (
    ROWS,
    STEPS,
    Case,
    Trained,
    assert_same_losses,
    assert_same_state,
    learning_rate,
    train_eagerly,
)
from tests.metal_kernels.models import Cnn, Gpt, Mlp

CASES = {
    "mlp": Case(
        Mlp,
        lambda: torch.randn(ROWS, 64),
        lambda: torch.randint(10, (ROWS,)),
        "cross_entropy",
        Sgd(momentum=0.9, nesterov=True, weight_decay=0.01),
        lambda parameters: torch.optim.SGD(
            parameters, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01
        ),
    ),
    "cnn": Case(
        lambda: Cnn(bias=False),
        lambda: torch.randn(ROWS, 1, 8, 8),
        lambda: torch.randn(ROWS, 10),
        "mse",
        Sgd(momentum=0.9),
        lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9),
    ),
    "gpt": Case(
        lambda: Gpt(bias=False),
        lambda: torch.randint(17, (ROWS, 8)),
        lambda: torch.randint(17, (ROWS, 8)),
        "cross_entropy",
        AdamW(weight_decay=0.1),
        lambda parameters: torch.optim.AdamW(parameters, lr=0.1, weight_decay=0.1),
    ),
}


@pytest.fixture(scope="module", params=CASES)
def trained(request: pytest.FixtureRequest) -> Trained:
    return train_eagerly(CASES[request.param])


COMPILED: dict[tuple[int, DeviceClass], Compilation] = {}


def compiled(trained: Trained, device: DeviceClass) -> Compilation:
    key = id(trained.program), device
    if key not in COMPILED:
        COMPILED[key] = compile_program(trained.program, device=device)
    return COMPILED[key]


@pytest.mark.parametrize(
    ("backend", "device", "steps"),
    [
        ("interpreter", "cpu", 2),
        ("wgpu", "cpu", STEPS),
        ("wgpu", "phone", STEPS),
        ("msl", "phone", STEPS),
        pytest.param("wgpu", "desktop", STEPS, marks=pytest.mark.slow),
        pytest.param("msl", "desktop", STEPS, marks=pytest.mark.slow),
        pytest.param("interpreter", "phone", 3, marks=pytest.mark.slow),
    ],
)
def test_compiled_steps_train_as_torch_does(
    trained: Trained, backend: str, device: DeviceClass, steps: int
) -> None:
    compilation = compiled(trained, device)
    runtime = CompiledRuntime(trained.program, compilation.compiled, BACKENDS[backend](compilation))
    run = runtime.train(
        trained.state,
        inputs=[trained.inputs],
        target=trained.target,
        order=trained.order[:steps],
        lr=learning_rate,
    )
    assert_same_losses(run, trained)
    if steps == STEPS:
        assert_same_state(run, trained)
