"""Each loss, each optimizer and clipping give torch's numbers, and so do the gradients."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F  # noqa: N812  # torch's own convention
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from metal_kernels.compiler.compile import compile_program
from metal_kernels.errors import CaptureError
from metal_kernels.frontend.capture import capture_training_step
from metal_kernels.frontend.losses import BceWithLogits, CrossEntropy, Huber, LossSpec, Mse, loss_function
from metal_kernels.frontend.optimizers import Adam, AdamW, OptimizerSpec, Sgd
from metal_kernels.runtimes.compiled import CompiledRuntime
from metal_kernels.runtimes.interpreter import InterpreterBackend
from metal_kernels.runtimes.reference import Batch, ReferenceRuntime, TrainingRun, initial_state
from tests.metal_kernels.models import Mlp

Eager = Callable[[Tensor, Tensor], Tensor]
IGNORED = -100

CLASS_LOSSES: dict[str, tuple[LossSpec, Eager]] = {
    "plain": (CrossEntropy(), F.cross_entropy),
    "smoothed": (
        CrossEntropy(label_smoothing=0.1),
        lambda logits, target: F.cross_entropy(logits, target, label_smoothing=0.1),
    ),
    "ignoring": (CrossEntropy(ignore_index=IGNORED), F.cross_entropy),
    "smoothed and ignoring": (
        CrossEntropy(label_smoothing=0.3, ignore_index=2),
        lambda logits, target: F.cross_entropy(logits, target, label_smoothing=0.3, ignore_index=2),
    ),
}
WEIGHTS = (0.5, 2.0, 1.0, 3.0, 1.5)
NUMBER_LOSSES: dict[str, tuple[LossSpec, Eager]] = {
    "mse": (Mse(), F.mse_loss),
    "huber": (Huber(), F.huber_loss),
    "narrow huber": (Huber(delta=0.3), lambda found, target: F.huber_loss(found, target, delta=0.3)),
    "bce": (BceWithLogits(), F.binary_cross_entropy_with_logits),
    "weighted bce": (
        BceWithLogits(pos_weight=3.0),
        lambda logits, target: F.binary_cross_entropy_with_logits(
            logits, target, pos_weight=torch.tensor(3.0)
        ),
    ),
    "bce of weighted columns": (
        BceWithLogits(pos_weight=WEIGHTS),
        lambda logits, target: F.binary_cross_entropy_with_logits(
            logits, target, pos_weight=torch.tensor(WEIGHTS)
        ),
    ),
}
SIZES = {
    "rows": st.integers(1, 6),
    "seed": st.integers(0, 10_000),
    "scale": st.sampled_from([0.0, 0.3, 4.0, 30.0]),
}


def assert_loss_and_gradient(spec: LossSpec, eager: Eager, predictions: Tensor, target: Tensor) -> None:
    ours, theirs = (predictions.clone().requires_grad_() for _ in range(2))
    losses = loss_function(spec)(ours, target), eager(theirs, target)
    torch.testing.assert_close(losses[0], losses[1], rtol=1e-6, atol=1e-6)
    gradients = [torch.autograd.grad(loss, at)[0] for loss, at in zip(losses, (ours, theirs), strict=True)]
    torch.testing.assert_close(gradients[0], gradients[1], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", CLASS_LOSSES)
@settings(deadline=None, max_examples=30)
@given(**SIZES)
def test_a_loss_of_classes_is_torchs(name: str, rows: int, seed: int, scale: float) -> None:
    generator = torch.Generator().manual_seed(seed)
    spec, eager = CLASS_LOSSES[name]
    logits = torch.randn(rows, 5, generator=generator) * scale
    target = torch.randint(5, (rows,), generator=generator)
    ignored = spec.ignore_index if isinstance(spec, CrossEntropy) else None
    if ignored is not None:
        target[torch.rand(rows, generator=generator) < 0.4] = ignored
        target[0] = 1
    assert_loss_and_gradient(spec, eager, logits, target)


@pytest.mark.parametrize("name", NUMBER_LOSSES)
@settings(deadline=None, max_examples=30)
@given(**SIZES)
def test_a_loss_of_numbers_is_torchs(name: str, rows: int, seed: int, scale: float) -> None:
    generator = torch.Generator().manual_seed(seed)
    predictions = torch.randn(rows, 5, generator=generator) * scale
    target = torch.rand(rows, 5, generator=generator).round(decimals=1)
    assert_loss_and_gradient(*NUMBER_LOSSES[name], predictions, target)


def test_where_every_target_is_ignored_nothing_moves() -> None:
    logits = torch.randn(3, 5, requires_grad=True)
    loss = loss_function(CrossEntropy(ignore_index=IGNORED))(logits, torch.full((3,), IGNORED))
    assert loss.item() == 0
    assert not torch.autograd.grad(loss, logits)[0].any()


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: CrossEntropy(label_smoothing=1.0), "label_smoothing"),
        (lambda: CrossEntropy(label_smoothing=-0.1), "label_smoothing"),
        (lambda: Huber(delta=0.0), "delta"),
        (lambda: BceWithLogits(pos_weight=0.0), "pos_weight"),
        (lambda: BceWithLogits(pos_weight=(1.0, -1.0)), "pos_weight"),
        (lambda: Sgd(clip_norm=0.0), "clip_norm"),
        (lambda: AdamW(clip_norm=-1.0), "clip_norm"),
        (lambda: Adam(eps=0.0), "eps"),
    ],
)
def test_an_impossible_loss_or_optimizer_is_refused(make: Callable[[], object], field: str) -> None:
    with pytest.raises(CaptureError) as caught:
        make()
    assert caught.value.field == field


def test_weights_that_fit_no_logits_are_refused() -> None:
    with pytest.raises(CaptureError, match="has 2 numbers; give one, or one for each of the 5"):
        loss_function(BceWithLogits(pos_weight=(1.0, 2.0)))(torch.zeros(3, 5), torch.zeros(3, 5))


OPTIMIZERS: dict[str, tuple[OptimizerSpec, Callable[[nn.Module], torch.optim.Optimizer]]] = {
    "sgd": (
        Sgd(momentum=0.9, weight_decay=0.01, clip_norm=0.5),
        lambda module: torch.optim.SGD(module.parameters(), momentum=0.9, weight_decay=0.01),
    ),
    "adam": (
        Adam(weight_decay=0.05, clip_norm=0.05),
        lambda module: torch.optim.Adam(module.parameters(), weight_decay=0.05),
    ),
    "adam without decay": (Adam(), lambda module: torch.optim.Adam(module.parameters())),
    "adamw": (AdamW(clip_norm=100.0), lambda module: torch.optim.AdamW(module.parameters())),
}


def trained(spec: OptimizerSpec, module: nn.Module, batches: list[Batch], *, compiled: bool) -> TrainingRun:
    program = capture_training_step(
        module,
        loss=CrossEntropy(label_smoothing=0.1),
        optimizer=spec,
        example_inputs=batches[0].inputs,
        example_target=batches[0].target,
    )
    state = initial_state(module, program)
    if not compiled:
        return ReferenceRuntime(program).run_steps(state, batches, lr=lambda step: 0.02)
    compilation = compile_program(program, device="cpu")
    rows = len(batches[0].target)
    return CompiledRuntime(program, compilation.compiled, InterpreterBackend(compilation)).train(
        state,
        inputs=[torch.cat([batch.inputs[0] for batch in batches])],
        target=torch.cat([batch.target for batch in batches]),
        order=[torch.arange(rows) + rows * step for step in range(len(batches))],
        lr=lambda step: 0.02,
    )


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("compiled", [False, True])
def test_clipped_steps_of_an_optimizer_are_torchs(name: str, compiled: bool) -> None:
    spec, make = OPTIMIZERS[name]
    module = Mlp()
    batches = [
        Batch((torch.randn(8, 64) * 3,), torch.randint(10, (8,))) for _ in range(3 if compiled else 20)
    ]
    run = trained(spec, module, batches, compiled=compiled)
    optimizer = make(module)
    for group in optimizer.param_groups:
        group["lr"] = 0.02
    for batch in batches:
        optimizer.zero_grad()
        F.cross_entropy(module(*batch.inputs), batch.target, label_smoothing=0.1).backward()
        if spec.clip_norm is not None:
            torch.nn.utils.clip_grad_norm_(module.parameters(), spec.clip_norm)
        optimizer.step()
    for key, parameter in module.named_parameters():
        torch.testing.assert_close(run.state[key], parameter.detach(), rtol=1e-4, atol=1e-6)
