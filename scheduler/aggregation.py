"""The outer step of a round and its evaluation, on tensors alone.

DiLoCo (Douillard et al. 2023): the average of the shards' deltas is a pseudo-gradient, and the outer optimizer is
SGD with Nesterov momentum on it.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from metal_kernels.runtimes.reference import ReferenceRuntime

Tensors = dict[str, Tensor]


@dataclass(frozen=True)
class Contribution:
    """One shard's decoded delta and how many samples it was trained on."""

    delta: Tensors
    samples: int


@dataclass(frozen=True)
class Evaluation:
    """Means over all validation rows. `accuracy` is None for regression."""

    loss: float
    accuracy: float | None


def outer_step(
    base: Mapping[str, Tensor],
    momentum: Mapping[str, Tensor],
    contributions: Sequence[Contribution],
    *,
    parameters: AbstractSet[str],
    learning_rate: float,
    momentum_factor: float,
) -> tuple[Tensors, Tensors]:
    """(next parameters and buffers, next momentum) after a round.

    Float parameters take the outer optimizer's step. Float buffers, as running statistics, become their plain
    weighted mean; integer buffers, as counters, the largest. No momentum yet is zero momentum.
    """
    new: Tensors = {}
    new_momentum: Tensors = {}
    for name, old in base.items():
        deltas = [contribution.delta[name] for contribution in contributions]
        if not old.is_floating_point():
            new[name] = (old.to(torch.int64) + torch.stack(deltas).amax(dim=0)).to(old.dtype)
            continue
        mean = _weighted_mean(deltas, [contribution.samples for contribution in contributions])
        if name not in parameters:
            new[name] = old + mean
            continue
        gradient = -mean
        buffer = momentum_factor * momentum.get(name, torch.zeros_like(old)) + gradient
        new_momentum[name] = buffer
        new[name] = old - learning_rate * (gradient + momentum_factor * buffer)
    return new, new_momentum


def is_finite(tensors: Mapping[str, Tensor]) -> bool:
    return all(bool(torch.isfinite(t).all()) for t in tensors.values() if t.is_floating_point())


def evaluate(
    forward: ReferenceRuntime,
    state: Mapping[str, Tensor],
    inputs: Tensor,
    targets: Tensor,
    *,
    batch_rows: int,
) -> Evaluation:
    """Loss and accuracy over all rows. The program takes `batch_rows` rows; the last batch is filled up.

    Integer targets are classes (cross-entropy), (rows) or for sequences (rows, positions); others are values (MSE).
    """
    losses: list[Tensor] = []
    hits: list[Tensor] = []
    for start in range(0, len(inputs), batch_rows):
        rows = inputs[start : start + batch_rows]
        wanted = targets[start : start + batch_rows]
        filler = rows[:1].expand(batch_rows - len(rows), *rows.shape[1:])
        predicted = forward.predict(state, torch.cat([rows, filler]))[: len(rows)]
        if targets.dtype == torch.int64:
            logits = predicted.flatten(0, -2).float()
            losses.append(functional.cross_entropy(logits, wanted.flatten(), reduction="none"))
            hits.append(logits.argmax(dim=-1) == wanted.flatten())
        else:
            losses.append((predicted - wanted).square().flatten())
    accuracy = torch.cat(hits).double().mean().item() if hits else None
    return Evaluation(loss=torch.cat(losses).double().mean().item(), accuracy=accuracy)


def _weighted_mean(tensors: Sequence[Tensor], weights: Sequence[int]) -> Tensor:
    total = sum(weights)
    mean = torch.zeros_like(tensors[0])
    for tensor, weight in zip(tensors, weights, strict=True):
        mean += tensor * (weight / total)
    return mean
