"""A captured step, replayed 50 times, trains as torch does: same losses, parameters and running statistics.

Adam divides a gradient by its own size. Where the true gradient is zero (a bias before batch norm, the bias
of an attention key) it turns rounding noise into full steps, so such biases are left out of the modules for
Adam.
"""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F  # noqa: N812  # torch's own convention
from torch import Tensor, nn

from metal_kernels.frontend.capture import capture_training_step
from metal_kernels.frontend.losses import LossSpec
from metal_kernels.frontend.optimizers import AdamW, OptimizerSpec, Sgd
from metal_kernels.runtimes.reference import Batch, ReferenceRuntime, initial_state
from tests.metal_kernels.models import Cnn, Gpt, Mlp

STEPS = 50
LossFunction = Callable[[Tensor, Tensor], Tensor]


def learning_rate(step: int) -> float:
    return 0.02 / (1 + 0.05 * step)


def digits_batches() -> list[Batch]:
    return [Batch((torch.randn(16, 64),), torch.randint(10, (16,))) for _ in range(STEPS)]


def image_batches() -> list[Batch]:
    return [Batch((torch.randn(4, 1, 8, 8),), torch.randint(10, (4,))) for _ in range(STEPS)]


def text_batches() -> list[Batch]:
    return [Batch((torch.randint(17, (4, 8)),), torch.randint(17, (4, 8))) for _ in range(STEPS)]


def cross_entropy(logits: Tensor, target: Tensor) -> Tensor:
    return F.cross_entropy(logits.flatten(0, -2), target.flatten())


def train_eagerly(
    module: nn.Module, optimizer: torch.optim.Optimizer, batches: list[Batch], loss_function: LossFunction
) -> list[float]:
    module.train()
    losses = []
    for step, batch in enumerate(batches, start=1):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step)
        optimizer.zero_grad()
        loss = loss_function(module(*batch.inputs), batch.target)
        torch.autograd.backward(loss)
        optimizer.step()
        losses.append(loss.item())
    return losses


def assert_trains_as_eager(
    module: nn.Module,
    spec: OptimizerSpec,
    optimizer: torch.optim.Optimizer,
    batches: list[Batch],
    *,
    loss: LossSpec = "cross_entropy",
    loss_function: LossFunction = cross_entropy,
    may_stay: frozenset[str] = frozenset(),
) -> None:
    program = capture_training_step(
        module,
        loss=loss,
        optimizer=spec,
        example_inputs=batches[0].inputs,
        example_target=batches[0].target,
    )
    start = initial_state(module, program)
    run = ReferenceRuntime(program).run_steps(start, batches, lr=learning_rate)
    eager_losses = train_eagerly(module, optimizer, batches, loss_function)

    torch.testing.assert_close(run.losses, eager_losses, rtol=0, atol=1e-5)
    trained = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    assert trained.keys() == program.model_spec.keys()
    for key, tensor in trained.items():
        torch.testing.assert_close(run.state[key], tensor.detach(), rtol=0, atol=1e-5, msg=key)
    moved = {key for key, tensor in trained.items() if not torch.equal(start[key], tensor)}
    assert trained.keys() - moved <= may_stay


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"momentum": 0.9},
        {"momentum": 0.9, "weight_decay": 0.01},
        {"momentum": 0.9, "weight_decay": 0.01, "nesterov": True},
    ],
)
def test_an_mlp_trained_by_sgd_matches_eager(options):
    module = Mlp()
    optimizer = torch.optim.SGD(module.parameters(), **options)
    assert_trains_as_eager(module, Sgd(**options), optimizer, digits_batches())


def test_an_mlp_trained_by_adamw_matches_eager():
    module = Mlp()
    optimizer = torch.optim.AdamW(module.parameters(), betas=(0.8, 0.95), eps=1e-7, weight_decay=0.1)
    spec = AdamW(beta1=0.8, beta2=0.95, eps=1e-7, weight_decay=0.1)
    assert_trains_as_eager(module, spec, optimizer, digits_batches())


def test_a_cnn_with_batch_norm_matches_eager_with_its_running_statistics():
    module = Cnn()
    optimizer = torch.optim.SGD(module.parameters(), momentum=0.9)
    # Batch norm takes a bias before it away again: its gradient is rounding and nothing else.
    spec, may_stay = Sgd(momentum=0.9), frozenset({"first.bias"})
    assert_trains_as_eager(module, spec, optimizer, image_batches(), may_stay=may_stay)
    assert module.first_norm.num_batches_tracked == STEPS


def test_a_cnn_trained_by_adamw_matches_eager():
    module = Cnn(bias=False)
    assert_trains_as_eager(module, AdamW(), torch.optim.AdamW(module.parameters()), image_batches())


def test_a_small_gpt_with_tied_weights_matches_eager():
    module = Gpt()
    optimizer = torch.optim.SGD(module.parameters(), momentum=0.9, nesterov=True)
    assert_trains_as_eager(module, Sgd(momentum=0.9, nesterov=True), optimizer, text_batches())
    assert module.head.weight is module.tokens.weight


def test_a_small_gpt_trained_by_adamw_matches_eager():
    module = Gpt(bias=False)
    assert_trains_as_eager(module, AdamW(), torch.optim.AdamW(module.parameters()), text_batches())


def test_a_regression_by_mean_squared_error_matches_eager():
    module = nn.Sequential(nn.Linear(5, 8), nn.SiLU(), nn.Linear(8, 2))
    batches = [Batch((torch.randn(7, 5),), torch.randn(7, 2)) for _ in range(STEPS)]
    optimizer = torch.optim.SGD(module.parameters(), momentum=0.9)
    assert_trains_as_eager(
        module, Sgd(momentum=0.9), optimizer, batches, loss="mse", loss_function=F.mse_loss
    )
