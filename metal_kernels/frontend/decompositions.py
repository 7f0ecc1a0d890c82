"""Which operations are broken into smaller ones during capture, and how the rest are spelled.

Few, simple operations reach a program: each one left here is one less to write for every GPU.
"""

from functools import cache
from typing import Final

import torch
from torch._decomp import core_aten_decompositions, get_decompositions

from metal_kernels.frontend.formulas import Table, own_table
from metal_kernels.program.ops import OPS

aten: Final = torch.ops.aten

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
    aten._weight_norm_interface,
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
    return table | own_table()


# Torch lets a number stand where the schema says tensor; a program does not.
SCALAR_FORMS: Final[dict[str, str]] = {
    f"aten.{name}.Tensor": f"aten.{name}.Scalar"
    for name in ("add", "sub", "mul", "div", "eq", "ne", "lt", "le", "gt", "ge")
} | {"aten.pow.Tensor_Tensor": "aten.pow.Tensor_Scalar"}

# Only strides or autograd distinguish these from their argument, and a program knows neither.
IDENTITIES: Final = frozenset(
    f"aten.{name}"
    for name in (
        "alias.default",
        "detach.default",
        "detach_.default",
        "clone.default",
        "lift_fresh_copy.default",
    )
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
    "aten.masked_scatter": "use torch.where(condition, a, b), whose shape does not depend on the data",
    "aten._local_scalar_dense": "keep the value a tensor; do not call .item(), int() or float() on it",
    "aten._unique": "compute it before training and pass it as an input",
    "aten.unique": "compute it before training and pass it as an input",
    "aten.sort": "sort before training, or use amax or argmax",
    "aten.argsort": "sort before training, or use argmax",
    "aten.topk": "use amax or argmax",
    "aten.kthvalue": "use amax, amin or mean",
    "aten.median": "use mean, amax or amin",
    "aten.mode": "count it before training and pass it as an input",
    "aten.convolution": "use convolutions of one or two dimensions, over a folded batch if need be",
    "aten.avg_pool3d": "pool in two dimensions, or take the mean over a dimension",
    "aten.max_pool3d": "pool in two dimensions, or use amax over a dimension",
    "aten.adaptive_max_pool": "use nn.AdaptiveAvgPool2d, or max pooling with a fixed window",
    "aten.fractional_max_pool": "use max pooling with a fixed window",
    "aten._embedding_bag": "use nn.Embedding and a mean or sum over its rows",
    "aten.embedding_dense_backward": "use nn.Embedding without scale_grad_by_freq",
    "aten._cdist": "use the squares: (a * a).sum(-1), (b * b).sum(-1) and a @ b.mT",
    "aten.grid_sampler": "use nn.Upsample, or sample before training",
    "aten.replication_pad": "pad with zeros, or with padding_mode='reflect' or 'circular'",
    "aten.upsample_bicubic": "use nn.Upsample with mode='nearest' or 'bilinear'",
    "aten.upsample": "use nn.Upsample with mode='nearest' or 'bilinear' on images",
    "aten.diagonal_scatter": "multiply by an identity matrix and sum, instead of taking a diagonal",
    "aten.view_as_complex": "keep real and imaginary parts as two real tensors",
    "aten.view_as_real": "keep real and imaginary parts as two real tensors",
    "aten.polar": "keep real and imaginary parts as two real tensors",
    "aten._fft": "use a product with the transform's matrix, or transform before training",
    "aten.stft": "transform before training and pass the result as an input",
    "aten._linalg": "use products and sums; factorisations run before training",
    "aten.linalg": "use products and sums; factorisations run before training",
    "aten.cholesky": "use products and sums; factorisations run before training",
    "aten.histc": "compare with the bins' bounds and sum",
    "aten.bincount": "use F.one_hot and a sum",
    "aten.cummax": "use amax, or a running maximum made before training",
    "aten.cummin": "use amin, or a running minimum made before training",
    "aten.logcumsumexp": "use logsumexp, or cumsum of exponentials",
    "aten.as_strided": "use view, permute, slices or unfold",
    "aten._ctc_loss": "use cross-entropy over aligned targets",
    "aten.erfinv": "use an inverse of a smoother function, such as logit",
    "aten.special": "express it by exp, log, erf and arithmetic",
    "aten.lgamma": "express it by exp, log, erf and arithmetic",
    "aten.digamma": "express it by exp, log, erf and arithmetic",
}


def has_advice(op_name: str) -> bool:
    """Whether the operation is one that people write and no program may contain."""
    return op_name.startswith(tuple(INSTEAD)) and op_name not in OPS


def instead_of(op_name: str) -> str:
    """A short piece of advice for an operation outside the allow-list."""
    for start, advice in INSTEAD.items():
        if op_name.startswith(start):
            return advice
    return "express it by arithmetic, matrix products, convolutions, pooling, reductions, indexing or where"
