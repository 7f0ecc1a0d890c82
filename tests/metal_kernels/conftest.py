"""Captures are slow to make and cannot be changed, so tests share them."""

from collections.abc import Iterator

import pytest
import torch

from metal_kernels.frontend.capture import capture_forward, capture_training_step
from metal_kernels.frontend.optimizers import Sgd
from metal_kernels.program.graph import Program
from tests.metal_kernels.models import Cnn, Mlp


@pytest.fixture(autouse=True)
def _one_thread_and_a_fixed_seed() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="session")
def mlp_program() -> Program:
    """A training step of `Mlp`: cross-entropy, SGD with momentum, 16 rows."""
    return capture_training_step(
        Mlp(),
        loss="cross_entropy",
        optimizer=Sgd(momentum=0.9),
        example_inputs=[torch.zeros(16, 64)],
        example_target=torch.zeros(16, dtype=torch.int64),
    )


@pytest.fixture(scope="session")
def cnn_program() -> Program:
    """A training step of `Cnn`: cross-entropy, SGD with momentum, 4 rows."""
    return capture_training_step(
        Cnn(),
        loss="cross_entropy",
        optimizer=Sgd(momentum=0.9),
        example_inputs=[torch.zeros(4, 1, 8, 8)],
        example_target=torch.zeros(4, dtype=torch.int64),
    )


@pytest.fixture(scope="session")
def mlp_forward() -> Program:
    """Predictions of `Mlp` for 16 rows."""
    return capture_forward(Mlp(), example_inputs=[torch.zeros(16, 64)])
