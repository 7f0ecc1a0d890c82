"""The outer step is Nesterov SGD on the averaged delta, and trains as well as training alone does."""

import pytest
import torch
from torch import nn

from metal_kernels.delta import delta_decode, delta_encode
from metal_kernels.runtimes.reference import ReferenceRuntime
from scheduler.aggregation import Contribution, Tensors, evaluate, is_finite, outer_step

from .training import BATCH, LEARNING_RATE, VALIDATION_BATCH, digits, local_steps, trainee
from .world import spec

SHARDS, STEPS, ROUNDS = 3, 20, 24


def step(
    base: Tensors,
    contributions: list[Contribution],
    momentum: Tensors | None = None,
    *,
    lr: float = 0.7,
    mu: float = 0.9,
) -> tuple[Tensors, Tensors]:
    return outer_step(
        base, momentum or {}, contributions, parameters={"w"}, learning_rate=lr, momentum_factor=mu
    )


def test_it_is_torchs_nesterov_sgd_on_the_negative_mean_delta():
    weight = nn.Parameter(torch.tensor([1.0, 2.0]))
    oracle = torch.optim.SGD([weight], lr=0.7, momentum=0.9, nesterov=True)
    ours: Tensors = {"w": weight.detach().clone()}
    momentum: Tensors = {}
    for delta in torch.tensor([[0.1, -0.2], [0.3, 0.1], [-0.2, 0.5]]):
        weight.grad = -delta
        oracle.step()
        ours, momentum = step(ours, [Contribution({"w": delta}, samples=64)], momentum)
        torch.testing.assert_close(ours["w"], weight.detach())


def test_deltas_weigh_by_the_samples_they_were_trained_on():
    base = {"w": torch.zeros(1)}
    contributions = [
        Contribution({"w": torch.tensor([1.0])}, samples=300),
        Contribution({"w": torch.tensor([5.0])}, samples=100),
    ]
    new, _ = step(base, contributions, lr=1.0, mu=0.0)
    assert new["w"].item() == pytest.approx(2.0)


def test_running_statistics_are_averaged_and_counters_take_the_largest():
    base = {"mean": torch.tensor([1.0]), "count": torch.tensor(5)}
    contributions = [
        Contribution({"mean": torch.tensor([1.0]), "count": torch.tensor(3)}, samples=1),
        Contribution({"mean": torch.tensor([2.0]), "count": torch.tensor(4)}, samples=1),
    ]
    new, momentum = step(base, contributions)
    assert new["mean"].item() == pytest.approx(2.5)
    assert new["count"].item() == 9
    assert new["count"].dtype == torch.int64
    assert momentum == {}


def test_a_number_that_is_not_finite_is_seen():
    assert is_finite({"w": torch.ones(2), "n": torch.tensor(1)})
    assert not is_finite({"w": torch.tensor([1.0, float("inf")])})


def test_evaluation_counts_each_row_once_whatever_the_batch():
    data = digits()
    forward = ReferenceRuntime(trainee().forward)
    rows = VALIDATION_BATCH + 10  # the last batch is filled up
    inputs, targets = data.test_inputs[:rows], data.test_targets[:rows]
    found = evaluate(forward, trainee().state, inputs, targets, batch_rows=VALIDATION_BATCH)
    logits = torch.cat([
        forward.predict(trainee().state, inputs[i : i + 1].expand(VALIDATION_BATCH, -1))[:1] for i in range(rows)
    ])  # fmt: skip
    assert found.loss == pytest.approx(nn.functional.cross_entropy(logits, targets).item(), rel=1e-5)
    assert found.accuracy == pytest.approx((logits.argmax(1) == targets).double().mean().item())


def accuracy(state) -> float:
    data = digits()
    forward = ReferenceRuntime(trainee().forward)
    found = evaluate(forward, state, data.test_inputs, data.test_targets, batch_rows=VALIDATION_BATCH)
    assert found.accuracy is not None
    return found.accuracy


def trained_apart() -> float:
    """Three devices, 20 local steps a round, deltas through the codec, the default outer optimizer."""
    data, program = digits(), trainee().training
    parameters = frozenset(entry.key for entry in program.inputs("parameter"))
    parts = torch.arange(len(data.targets)).tensor_split(SHARDS)
    state = trainee().state
    momentum: Tensors = {}
    for round_index in range(ROUNDS):
        contributions = []
        for shard, part in enumerate(parts):
            seed = round_index * SHARDS + shard
            new, _ = local_steps(state, data.inputs[part], data.targets[part], steps=STEPS, seed=seed)
            delta = delta_decode(delta_encode(state, new), spec=program.model_spec)
            contributions.append(Contribution(delta, samples=STEPS * BATCH))
        state, momentum = outer_step(
            state,
            momentum,
            contributions,
            parameters=parameters,
            learning_rate=spec().outer_learning_rate,
            momentum_factor=spec().outer_momentum,
        )
    return accuracy(state)


def trained_alone() -> float:
    """The same model in plain torch, on as many samples."""
    data = digits()
    module = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    module.load_state_dict(trainee().state)
    optimizer = torch.optim.AdamW(module.parameters(), lr=LEARNING_RATE, weight_decay=0.01)
    generator = torch.Generator().manual_seed(0)
    for _ in range(ROUNDS * SHARDS * STEPS):
        rows = torch.randint(len(data.inputs), (BATCH,), generator=generator)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(module(data.inputs[rows]), data.targets[rows])
        loss.backward()
        optimizer.step()
    return accuracy(module.state_dict())


def test_three_devices_learn_digits_as_well_as_one_does_alone():
    apart, alone = trained_apart(), trained_alone()
    assert apart >= 0.96
    assert apart >= alone - 0.005
