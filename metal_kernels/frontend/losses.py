"""The losses a job can train with, written so that their gradients are cheap on a phone.

Each gives the mean over the batch, the same number as its namesake in `torch.nn.functional`.
"""

from dataclasses import dataclass
from typing import ClassVar, Final, Literal, TypeAlias, get_args

import torch
import torch.nn.functional as F  # noqa: N812  # torch's own convention
from torch import Tensor

from metal_kernels.errors import CaptureError

LossName: TypeAlias = Literal["cross_entropy", "mse", "huber", "bce_with_logits"]


@dataclass(frozen=True)
class CrossEntropy:
    """Of logits (..., classes) against class indices (...), over the indices that are not `ignore_index`.

    With `label_smoothing`, that share of each target is spread evenly over all classes. Where every index is ignored
    the loss is 0 (torch's is not a number, which would end the training).
    """

    name: ClassVar[LossName] = "cross_entropy"
    label_smoothing: float = 0.0
    ignore_index: int | None = None

    def __post_init__(self) -> None:
        _require(0 <= self.label_smoothing < 1, "label_smoothing", "lie in 0 <= label_smoothing < 1")

    def __call__(self, logits: Tensor, target: Tensor) -> Tensor:
        """The chosen class is picked by comparison, not by gather: the gradient of a gather is a scatter with
        atomics, that of a comparison is one fused elementwise kernel. An index out of range would add nothing to
        the loss; data sets are checked for that when they arrive.
        """
        if target.dtype != torch.int64 or logits.dim() < 2 or target.shape != logits.shape[:-1]:
            raise CaptureError(
                f"Cross-entropy needs int64 class indices of shape {list(logits.shape[:-1])} for predictions of "
                f"shape {list(logits.shape)}; the target is {target.dtype} of shape {list(target.shape)}.",
                field="target",
            )
        classes = torch.arange(logits.shape[-1], device=logits.device)
        chosen = target.unsqueeze(-1) == classes
        log_probabilities = torch.log_softmax(logits, dim=-1)
        weighted = torch.where(chosen, log_probabilities, 0.0)
        if self.label_smoothing:
            spread = self.label_smoothing / logits.shape[-1]
            weighted = torch.where(chosen, 1 - self.label_smoothing + spread, spread) * log_probabilities
        if self.ignore_index is None:
            return -weighted.sum() / target.numel()
        counted = target != self.ignore_index
        return -torch.where(counted.unsqueeze(-1), weighted, 0.0).sum() / counted.sum().clamp(min=1)


@dataclass(frozen=True)
class Mse:
    """Mean squared error over all elements; both tensors have one shape."""

    name: ClassVar[LossName] = "mse"

    def __call__(self, predictions: Tensor, target: Tensor) -> Tensor:
        _require_like(predictions, target, "Mean squared error")
        difference = predictions - target
        return (difference * difference).mean()


@dataclass(frozen=True)
class Huber:
    """Squared for errors up to `delta`, linear beyond: outliers pull less than in `Mse`."""

    name: ClassVar[LossName] = "huber"
    delta: float = 1.0

    def __post_init__(self) -> None:
        _require(self.delta > 0, "delta", "be above 0")

    def __call__(self, predictions: Tensor, target: Tensor) -> Tensor:
        _require_like(predictions, target, "The Huber loss")
        difference = predictions - target
        near = difference.clamp(-self.delta, self.delta)
        return (near * (difference - 0.5 * near)).mean()


@dataclass(frozen=True)
class BceWithLogits:
    """Binary cross-entropy of logits against probabilities of the same shape.

    `pos_weight` multiplies the positive part: one number, or one for each entry of the last dimension.
    """

    name: ClassVar[LossName] = "bce_with_logits"
    pos_weight: float | tuple[float, ...] = 1.0

    def __post_init__(self) -> None:
        _require(all(weight > 0 for weight in self._weights), "pos_weight", "be above 0")

    @property
    def _weights(self) -> tuple[float, ...]:
        return self.pos_weight if isinstance(self.pos_weight, tuple) else (self.pos_weight,)

    def __call__(self, logits: Tensor, target: Tensor) -> Tensor:
        _require_like(logits, target, "Binary cross-entropy")
        if len(self._weights) not in (1, logits.shape[-1]):
            raise CaptureError(
                f"The loss's pos_weight has {len(self._weights)} numbers; give one, or one for each of the "
                f"{logits.shape[-1]} logits.",
                field="pos_weight",
            )
        weight: Tensor | float = self._weights[0]
        if len(self._weights) > 1:
            weight = torch.tensor(self._weights, dtype=logits.dtype)
        positive = target * (weight - 1) + 1
        return ((1 - target) * logits - positive * F.logsigmoid(logits)).mean()


Loss: TypeAlias = CrossEntropy | Mse | Huber | BceWithLogits
LossSpec: TypeAlias = Loss | LossName
"""A name stands for the loss with its usual parameters."""


def loss_function(spec: LossSpec) -> Loss:
    """The loss: a function (predictions, target) -> scalar, the mean over the batch."""
    if not isinstance(spec, str):
        return spec
    try:
        return _BY_NAME[spec]()
    except KeyError:
        raise CaptureError(
            f"The loss '{spec}' is unknown; use one of {', '.join(_BY_NAME)}.", field="loss"
        ) from None


_BY_NAME: Final[dict[str, type[Loss]]] = {loss.name: loss for loss in get_args(Loss)}


def _require(holds: bool, field: str, rule: str) -> None:
    if not holds:
        raise CaptureError(f"The loss's {field} must {rule}.", field=field)


def _require_like(predictions: Tensor, target: Tensor, who: str) -> None:
    if target.dtype != predictions.dtype or target.shape != predictions.shape:
        raise CaptureError(
            f"{who} needs a {predictions.dtype} target of shape {list(predictions.shape)}; it is {target.dtype} of "
            f"shape {list(target.shape)}.",
            field="target",
        )
