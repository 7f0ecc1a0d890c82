"""Twenty steps of a model in eager torch, and whether a compiled program does the same."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import pytest
import torch
from torch import Tensor, nn

from metal_kernels.frontend.capture import capture_training_step
from metal_kernels.frontend.losses import LossSpec
from metal_kernels.frontend.optimizers import OptimizerSpec
from metal_kernels.program.graph import Program
from metal_kernels.runtimes.reference import TrainingRun, initial_state

STEPS: Final = 20
ROWS: Final = 40
BATCH: Final = 4


@dataclass(frozen=True)
class Case:
    """Biases whose true gradient is zero are left out: an optimizer turns their rounding noise into steps."""

    module: Callable[[], nn.Module]
    inputs: Callable[[], Tensor]
    target: Callable[[], Tensor]
    loss: LossSpec
    optimizer: OptimizerSpec
    eager: Callable[[list[nn.Parameter]], torch.optim.Optimizer]
    batch: int = BATCH


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


def train_eagerly(case: Case, *, steps: int = STEPS) -> Trained:
    torch.manual_seed(0)
    module, inputs, target = case.module(), case.inputs(), case.target()
    program = capture_training_step(
        module,
        loss=case.loss,
        optimizer=case.optimizer,
        example_inputs=[inputs[: case.batch]],
        example_target=target[: case.batch],
    )
    state = initial_state(module, program)
    order = [torch.randperm(len(inputs))[: case.batch] for _ in range(steps)]
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


def assert_same_losses(run: TrainingRun, trained: Trained) -> None:
    assert run.losses == pytest.approx(trained.losses[: len(run.losses)], rel=1e-4)


def assert_same_state(run: TrainingRun, trained: Trained) -> None:
    """Each parameter and buffer lies within 1e-4 of torch's, relative to its norm."""
    expected = {**dict(trained.module.named_parameters()), **dict(trained.module.named_buffers())}
    for name, tensor in expected.items():
        error = (run.state[name].float() - tensor.float()).norm() / tensor.float().norm().clamp(min=1e-3)
        assert error < 1e-4, name
