"""Which operations are broken into smaller ones during capture, and how the rest are spelled.

Few, simple operations reach a program: each one left here is one less to write for every GPU.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, Final, TypeAlias

import torch
from torch import Tensor
from torch._decomp import core_aten_decompositions, get_decompositions

aten: Final = torch.ops.aten

Table: TypeAlias = dict[Any, Callable[..., Any]]

# Kept whole although the core table breaks them: a scatter with atomics or random numbers would come out.
_KEPT_WHOLE: Final = (
    aten.embedding_dense_backward.default,
    aten.bernoulli.default,
    aten.bernoulli.p,
)
# Broken although the core set has them.
_BROKEN: Final = (
    aten.native_layer_norm,
    aten.hardtanh,
    aten.leaky_relu,
    aten.elu,
    aten.index_select,
    aten.linalg_vector_norm,
    aten.clamp.Tensor,
)


@cache
def early_table() -> Table:
    """For the first trace: operations that change a tensor without saying so in their schema.

    `native_batch_norm` writes its running statistics; broken up, the writes are visible and become new
    outputs.
    """
    return dict(get_decompositions([aten.native_batch_norm]))


@cache
def core_table() -> Table:
    """For the second trace: down to the operations a program may contain."""
    table: Table = dict(core_aten_decompositions())
    table.update(get_decompositions(_BROKEN))
    for op in _KEPT_WHOLE:
        table.pop(op, None)
    table[aten.copy.default] = _copy
    return table


def _copy(old: Tensor, new: Tensor, non_blocking: bool = False) -> Tensor:
    """What an in-place copy becomes: the new value in the old one's dtype and shape."""
    return new.to(old.dtype).expand(old.shape)


# Torch lets a number stand where the schema says tensor; a program does not.
SCALAR_FORMS: Final[dict[str, str]] = {
    f"aten.{name}.Tensor": f"aten.{name}.Scalar"
    for name in ("add", "sub", "mul", "div", "eq", "ne", "lt", "le", "gt", "ge")
} | {"aten.pow.Tensor_Tensor": "aten.pow.Tensor_Scalar"}

# Only strides or autograd distinguish these from their argument, and a program knows neither.
IDENTITIES: Final = frozenset(
    f"aten.{name}" for name in ("alias.default", "detach.default", "clone.default", "lift_fresh_copy.default")
)

# Their result is one number everywhere; None stands for the argument that says which. Memory that torch does
# not write is zeros here, so that every runtime agrees.
FILLS: Final[dict[str, int | None]] = {
    "aten.empty.memory_format": 0,
    "aten.empty_like.default": 0,
    "aten.empty_permuted.default": 0,
    "aten.new_empty.default": 0,
    "aten.scalar_tensor.default": None,
    "aten.full_like.default": None,
    "aten.zeros.default": 0,
    "aten.zeros_like.default": 0,
    "aten.new_zeros.default": 0,
    "aten.ones.default": 1,
    "aten.ones_like.default": 1,
    "aten.new_ones.default": 1,
    "aten.new_full.default": None,
}

# The whole tensor in place of some dimensions.
FULL_REDUCTIONS: Final[dict[str, str]] = {
    "aten.mean.default": "aten.mean.dim",
    "aten.max.default": "aten.amax.default",
    "aten.min.default": "aten.amin.default",
}

# What to use instead of an operation that cannot be captured, by the start of its name.
INSTEAD: Final[dict[str, str]] = {
    "aten.native_dropout": "use nn.Dropout, or pass training=self.training: evaluation draws no random numbers",
    "aten.bernoulli": "use nn.Dropout, or pass training=self.training: evaluation draws no random numbers",
    "aten.rand_like": "draw in training only (if self.training): evaluation draws no random numbers",
    "aten.rand.": "draw in training only (if self.training): evaluation draws no random numbers",
    "aten.uniform": "draw in training only (if self.training): evaluation draws no random numbers",
    "aten.rand": "use torch.rand, the one generator that every device shares",
    "aten.normal": "use torch.rand, the one generator that every device shares",
    "aten.multinomial": "draw before training and pass the result as an input",
    "aten.nonzero": "use torch.where(condition, a, b), whose shape does not depend on the data",
    "aten.masked_select": "use torch.where(condition, a, b), whose shape does not depend on the data",
    "aten._local_scalar_dense": "keep the value a tensor; do not call .item(), int() or float() on it",
    "aten._unique": "compute it before training and pass it as an input",
    "aten.sort": "sort before training, or use amax or argmax",
    "aten.topk": "use amax or argmax",
}


def has_advice(op_name: str) -> bool:
    """Whether the operation is one that people write and no program may contain."""
    return op_name.startswith(tuple(INSTEAD))


def instead_of(op_name: str) -> str:
    """A short piece of advice for an operation outside the allow-list."""
    for start, advice in INSTEAD.items():
        if op_name.startswith(start):
            return advice
    return "express it by arithmetic, matrix products, convolutions, pooling, reductions, indexing or where"
