"""Dropout and other random draws of a module become draws from a counter, the same on every device.

Torch's generators keep a state, which a program cannot. Each place that draws gets a stream of its own; the seed of
the shard and the step are inputs of the program.
"""

from typing import Any, Final

import torch
from torch import Tensor

from metal_kernels.frontend.formulas import Table
from metal_kernels.program.random import SEEDS

aten: Final = torch.ops.aten


class Draws:
    """Stands in for torch's random operations while a training step is traced."""

    def __init__(self) -> None:
        self._scalars: dict[str, Tensor] = {}
        self._streams = 0

    def begin(self, scalars: dict[str, Tensor]) -> None:
        """The inputs `seed_low`, `seed_high` and `step` of the trace that begins."""
        self._scalars = scalars
        self._streams = 0

    def table(self) -> Table:
        return {
            aten.bernoulli_.float: self._bernoulli_,
            aten.bernoulli_.Tensor: self._bernoulli_,
            aten.bernoulli.p: self._bernoulli,
            aten.bernoulli.default: lambda self_, generator=None: self._bernoulli(self_, self_),
            aten.native_dropout.default: self._native_dropout,
            aten.rand.default: self._rand,
            aten.rand_like.default: lambda like, **_: self._rand(list(like.shape)),
            aten.uniform_.default: self._uniform_,
        }

    def _rand(self, size: list[int], **_placement: Any) -> Tensor:
        self._streams += 1
        seed_low, seed_high, step = (self._scalars[key] for key in (*SEEDS, "step"))
        drawn: Tensor = torch.ops.nightshift.random_uniform(
            seed_low, seed_high, step, self._streams - 1, list(size)
        )
        return drawn

    def _bernoulli(self, like: Tensor, p: float | Tensor = 0.5, generator: object = None) -> Tensor:
        return (self._rand(list(like.shape)) < p).to(like.dtype)

    def _bernoulli_(self, changed: Tensor, p: float | Tensor = 0.5, generator: object = None) -> Tensor:
        return changed.copy_(self._bernoulli(changed, p))

    def _uniform_(
        self, changed: Tensor, low: float = 0.0, high: float = 1.0, generator: object = None
    ) -> Tensor:
        return changed.copy_(self._rand(list(changed.shape)) * (high - low) + low)

    def _native_dropout(self, source: Tensor, p: float, train: bool | None) -> tuple[Tensor, Tensor]:
        if train is False or p == 0:
            return source.clone(), torch.ones_like(source, dtype=torch.bool)
        kept = self._rand(list(source.shape)) < 1 - p
        return torch.where(kept, source / (1 - p), 0.0) if p < 1 else torch.zeros_like(source), kept
