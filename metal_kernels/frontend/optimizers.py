"""Optimizers as functional update rules, written in torch operations so that capture sees through them.

The learning rate and the step count (1 for the first step) are inputs of the program, so a schedule needs no
new capture. All slots start as zeros. Each rule gives the same numbers as its namesake in `torch.optim`. With
`clip_norm`, gradients are scaled down together, as `torch.nn.utils.clip_grad_norm_` does, so that their norm over all
parameters is at most that.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

import torch
from torch import Tensor

from metal_kernels.errors import CaptureError


@dataclass(frozen=True)
class Sgd:
    """`torch.optim.SGD` without dampening."""

    momentum: float = 0.0
    weight_decay: float = 0.0
    nesterov: bool = False
    clip_norm: float | None = None

    def __post_init__(self) -> None:
        _require_clip_norm(self.clip_norm)
        _require(0 <= self.momentum < 1, "momentum", "lie in 0 <= momentum < 1")
        _require(self.weight_decay >= 0, "weight_decay", "not be negative")
        _require(self.momentum > 0 or not self.nesterov, "nesterov", "be off when momentum is 0")

    @property
    def slots(self) -> tuple[str, ...]:
        return ("momentum_buffer",) if self.momentum else ()

    def update(
        self, parameter: Tensor, gradient: Tensor, slots: tuple[Tensor, ...], *, lr: Tensor, step: Tensor
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """The new parameter and its new slots."""
        if self.weight_decay:
            gradient = gradient + self.weight_decay * parameter
        if not self.momentum:
            return parameter - lr * gradient, ()
        velocity = self.momentum * slots[0] + gradient
        direction = gradient + self.momentum * velocity if self.nesterov else velocity
        return parameter - lr * direction, (velocity,)


@dataclass(frozen=True)
class Adam:
    """`torch.optim.Adam`: weight decay is part of the gradient."""

    beta1: float = 0.9
    beta2: float = 0.999
    eps: float = 1e-8
    weight_decay: float = 0.0
    clip_norm: float | None = None

    def __post_init__(self) -> None:
        _require(0 <= self.beta1 < 1, "beta1", "lie in 0 <= beta1 < 1")
        _require(0 <= self.beta2 < 1, "beta2", "lie in 0 <= beta2 < 1")
        _require(self.eps > 0, "eps", "be above 0")
        _require(self.weight_decay >= 0, "weight_decay", "not be negative")
        _require_clip_norm(self.clip_norm)

    @property
    def slots(self) -> tuple[str, ...]:
        return ("exp_avg", "exp_avg_sq")

    def update(
        self, parameter: Tensor, gradient: Tensor, slots: tuple[Tensor, ...], *, lr: Tensor, step: Tensor
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """The new parameter and its new slots."""
        if self.weight_decay:
            gradient = gradient + self.weight_decay * parameter
        return self._moved(parameter, gradient, slots, lr=lr, step=step)

    def _moved(
        self, parameter: Tensor, gradient: Tensor, slots: tuple[Tensor, ...], *, lr: Tensor, step: Tensor
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        mean = self.beta1 * slots[0] + (1 - self.beta1) * gradient
        square = self.beta2 * slots[1] + (1 - self.beta2) * gradient * gradient
        root = torch.sqrt(square / _bias_correction(self.beta2, step)) + self.eps
        return parameter - lr / _bias_correction(self.beta1, step) * mean / root, (mean, square)


@dataclass(frozen=True)
class AdamW(Adam):
    """`torch.optim.AdamW`: weight decay shrinks the parameter itself."""

    weight_decay: float = 0.01

    def update(
        self, parameter: Tensor, gradient: Tensor, slots: tuple[Tensor, ...], *, lr: Tensor, step: Tensor
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """The new parameter and its new slots."""
        kept = parameter * (1 - lr * self.weight_decay) if self.weight_decay else parameter
        return self._moved(kept, gradient, slots, lr=lr, step=step)


OptimizerSpec: TypeAlias = Sgd | Adam | AdamW

_CLIP_EPS: Final = 1e-6
"""What `clip_grad_norm_` adds to the norm that it divides by."""


def clipped(gradients: Mapping[str, Tensor], max_norm: float) -> dict[str, Tensor]:
    """The gradients, scaled down together where their norm over all elements is above `max_norm`."""
    squares = [(gradient * gradient).sum() for gradient in gradients.values()]
    norm = torch.sqrt(torch.stack(squares).sum())
    factor = (max_norm / (norm + _CLIP_EPS)).clamp(max=1.0)
    return {key: gradient * factor for key, gradient in gradients.items()}


def _require_clip_norm(clip_norm: float | None) -> None:
    _require(clip_norm is None or clip_norm > 0, "clip_norm", "be above 0")


def _require(holds: bool, field: str, rule: str) -> None:
    if not holds:
        raise CaptureError(f"The optimizer's {field} must {rule}.", field=field)


def _bias_correction(beta: float, step: Tensor) -> Tensor:
    """1 - beta^step, through expm1: in float32 the subtraction would lose four digits in the first steps."""
    if beta == 0:
        return torch.ones_like(step)
    return -torch.expm1(step * math.log(beta))
