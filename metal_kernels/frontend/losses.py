"""The losses a job can train with, written so that their gradients are cheap on a phone."""

from collections.abc import Callable
from typing import Final, Literal, TypeAlias

import torch
from torch import Tensor

from metal_kernels.errors import CaptureError

LossSpec: TypeAlias = Literal["cross_entropy", "mse"]
LossFunction: TypeAlias = Callable[[Tensor, Tensor], Tensor]


def loss_function(spec: LossSpec) -> LossFunction:
    """The loss by its name: a function (predictions, target) -> scalar, the mean over the batch."""
    try:
        return _LOSSES[spec]
    except KeyError:
        raise CaptureError(
            f"The loss '{spec}' is unknown; use one of {', '.join(_LOSSES)}.", field="loss"
        ) from None


def _cross_entropy(logits: Tensor, target: Tensor) -> Tensor:
    """Mean cross-entropy of `logits` (..., classes) against class indices (...).

    The chosen class is picked by comparison, not by gather: the gradient of a gather is a scatter with
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
    return -torch.where(chosen, log_probabilities, 0.0).sum() / target.numel()


def _mse(predictions: Tensor, target: Tensor) -> Tensor:
    """Mean squared error over all elements; both tensors have one shape."""
    if target.dtype != predictions.dtype or target.shape != predictions.shape:
        raise CaptureError(
            f"Mean squared error needs a {predictions.dtype} target of shape {list(predictions.shape)}; it "
            f"is {target.dtype} of shape {list(target.shape)}.",
            field="target",
        )
    difference = predictions - target
    return (difference * difference).mean()


_LOSSES: Final[dict[str, LossFunction]] = {"cross_entropy": _cross_entropy, "mse": _mse}
