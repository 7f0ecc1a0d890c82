"""Twenty compiled training steps give the losses and the state that torch gives, on every backend."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor, nn

from metal_kernels.compiler.compile import Compilation, compile_program
from metal_kernels.frontend.capture import capture_training_step
from metal_kernels.frontend.losses import LossSpec
from metal_kernels.frontend.optimizers import AdamW, OptimizerSpec, Sgd
from metal_kernels.passes.tiles import DeviceClass
from metal_kernels.program.graph import Program
from metal_kernels.runtimes.compiled import CompiledRuntime
from metal_kernels.runtimes.reference import initial_state
from tests.metal_kernels.backends import BACKENDS
from tests.metal_kernels.models import Cnn, Gpt, Mlp

STEPS = 20
ROWS = 40
BATCH = 4


@dataclass(frozen=True)
class Case:
    """Biases whose true gradient is zero are left out: an optimizer turns their rounding noise into steps."""

    module: Callable[[], nn.Module]
    inputs: Callable[[], Tensor]
    target: Callable[[], Tensor]
    loss: LossSpec
    optimizer: OptimizerSpec
    eager: Callable[[list[nn.Parameter]], torch.optim.Optimizer]


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


def learning_rate(step: int) -> float:
    return 0.02 / (1 + 0.05 * step)


@dataclass(frozen=True)
class Trained:
    """What torch made of a case, and what a backend needs to do the same."""

    program: Program
    module: nn.Module
    state: dict[str, Tensor]
    inputs: Tensor
    target: Tensor
    order: list[Tensor]
    losses: list[float]


@pytest.fixture(scope="module", params=CASES)
def trained(request: pytest.FixtureRequest) -> Trained:
    torch.manual_seed(0)
    case = CASES[request.param]
    module, inputs, target = case.module(), case.inputs(), case.target()
    program = capture_training_step(
        module,
        loss=case.loss,
        optimizer=case.optimizer,
        example_inputs=[inputs[:BATCH]],
        example_target=target[:BATCH],
    )
    state = initial_state(module, program)
    order = [torch.randperm(ROWS)[:BATCH] for _ in range(STEPS)]
    optimizer = case.eager(list(module.parameters()))
    module.train()
    losses = []
    for step, rows in enumerate(order, start=1):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step)
        optimizer.zero_grad()
        predictions = module(inputs[rows])
        if case.loss == "mse":
            loss = nn.functional.mse_loss(predictions, target[rows])
        else:
            loss = nn.functional.cross_entropy(predictions.flatten(0, -2), target[rows].flatten())
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return Trained(program, module, state, inputs, target, order, losses)


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
        pytest.param("msl", "cpu", STEPS, marks=pytest.mark.slow),
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
    assert run.losses == pytest.approx(trained.losses[:steps], rel=1e-4)
    if steps == STEPS:
        for name, expected in {
            **dict(trained.module.named_parameters()),
            **dict(trained.module.named_buffers()),
        }.items():
            error = (run.state[name].float() - expected.float()).norm() / expected.float().norm().clamp(
                min=1e-3
            )
            assert error < 1e-4, name
