"""The allow-list: every operation that a program may contain.

A program names an operation by its torch name (`aten.add.Tensor`); a name is looked up here and nowhere else.
Each row gives the rule by which the operation's work is counted (see `cost.py`). Which arguments an operation
takes, and of which types, comes from torch's schema for it, less the arguments that only say where a tensor
lives.

All operations are pure functions of static shapes. `aten.view.default` means reshape: values have no strides.
One operation is our own: `nightshift.random_uniform.default` (see `random.py`) draws random numbers from a counter.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

import torch

from metal_kernels.program import random as _random  # noqa: F401  # defines our own operation
from metal_kernels.program.graph import TORCH_DTYPES, Argument, Ref

CostRule: TypeAlias = Literal[
    "view", "fill", "move", "pointwise", "random", "reduction", "softmax", "matmul", "convolution"
]
ArgumentKind: TypeAlias = Literal[
    "tensor", "tensors", "int", "ints", "bools", "number", "bool", "text", "dtype"
]

# Where a tensor lives and how it lies in memory are the runtime's business.
_PLACEMENT: Final = frozenset(
    {"layout", "device", "pin_memory", "memory_format", "non_blocking", "generator"}
)
_KINDS: Final[dict[str, ArgumentKind]] = {
    "Tensor": "tensor",
    "List[Tensor]": "tensors",
    "List[Optional[Tensor]]": "tensors",
    "int": "int",
    "SymInt": "int",
    "List[int]": "ints",
    "List[SymInt]": "ints",
    "List[bool]": "bools",
    "float": "number",
    "number": "number",
    "bool": "bool",
    "str": "text",
    "ScalarType": "dtype",
}
_NON_FINITE: Final = frozenset({"Infinity", "-Infinity", "NaN"})

_COST_RULES: Final[dict[CostRule, str]] = {
    "view": """
        view.default permute.default expand.default unsqueeze.default squeeze.dims slice.Tensor select.int
    """,
    "fill": "full.default arange.start_step",
    "move": """
        cat.default gather.default index.Tensor embedding.default constant_pad_nd.default flip.default
        repeat.default slice_scatter.default scatter.src scatter.value
    """,
    "pointwise": """
        add.Tensor add.Scalar sub.Tensor sub.Scalar mul.Tensor mul.Scalar div.Tensor div.Scalar neg.default
        rsub.Scalar pow.Tensor_Scalar pow.Tensor_Tensor pow.Scalar reciprocal.default sqrt.default
        rsqrt.default exp.default expm1.default log.default log1p.default sin.default cos.default tanh.default
        sigmoid.default erf.default abs.default sign.default floor.default ceil.default round.default
        relu.default gelu.default maximum.default minimum.default clamp.default where.self _to_copy.default
        trunc.default log2.default atan2.default
        eq.Scalar eq.Tensor ne.Scalar ne.Tensor lt.Scalar lt.Tensor le.Scalar le.Tensor gt.Scalar gt.Tensor
        ge.Scalar ge.Tensor logical_and.default logical_or.default logical_not.default logical_xor.default
        bitwise_and.Tensor bitwise_or.Tensor bitwise_not.default isnan.default isinf.default
        fmod.Scalar fmod.Tensor remainder.Scalar remainder.Tensor div.Tensor_mode
    """,
    "random": "nightshift.random_uniform.default",
    "reduction": """
        sum.dim_IntList mean.dim amax.default amin.default prod.dim_int any.dim argmax.default argmin.default
        var.correction var_mean.correction cumsum.default cumprod.default max.dim min.dim
        scatter_add.default index_put.default embedding_dense_backward.default
        max_pool2d_with_indices.default max_pool2d_with_indices_backward.default
        avg_pool2d.default avg_pool2d_backward.default
        _adaptive_avg_pool2d.default _adaptive_avg_pool2d_backward.default
    """,
    "softmax": "_softmax.default _log_softmax.default",
    "matmul": "mm.default bmm.default addmm.default",
    "convolution": "convolution.default convolution_backward.default",
}


@dataclass(frozen=True)
class Parameter:
    """One argument that an operation takes."""

    name: str
    kind: ArgumentKind
    optional: bool
    keyword_only: bool

    def accepts(self, argument: Argument) -> bool:
        """Whether `argument` has this parameter's type; whether its value makes sense is for inference."""
        if argument is None:
            return self.optional
        return _CHECKS[self.kind](argument)

    def to_torch(self, argument: Argument) -> Any:
        """The value torch takes for an accepted argument; references stay."""
        if isinstance(argument, str):
            if self.kind == "dtype":
                return TORCH_DTYPES[argument]  # type: ignore[index]  # accepted, so it is one of them
            if self.kind == "number":
                return float(argument)
        return argument


@dataclass(frozen=True)
class Op:
    """A row of the allow-list: the torch operation, its parameters in order, its outputs, its cost rule."""

    name: str
    call: Callable[..., Any]
    parameters: tuple[Parameter, ...]
    makes_tensor_on_device: bool
    output_count: int
    cost_rule: CostRule

    def bind(
        self, args: Mapping[str, Argument], resolve: Callable[[Any], Any]
    ) -> tuple[list[Any], dict[str, Any]]:
        """Positional and keyword arguments of `call`, from accepted `args`, each through `resolve`."""
        positional: list[Any] = []
        keywords: dict[str, Any] = {}
        for parameter in self.parameters:
            value = resolve(parameter.to_torch(args[parameter.name]))
            if parameter.keyword_only:
                keywords[parameter.name] = value
            else:
                positional.append(value)
        return positional, keywords


def _row(name: str, cost_rule: CostRule) -> Op:
    full_name = name if name.startswith("nightshift.") else f"aten.{name}"
    namespace, packet, overload_name = full_name.split(".")
    overload: torch._ops.OpOverload = getattr(getattr(getattr(torch.ops, namespace), packet), overload_name)
    arguments = overload._schema.arguments
    return Op(
        name=full_name,
        call=torch.ops.aten.reshape.default if name == "view.default" else overload,
        parameters=tuple(_parameter(argument) for argument in arguments if argument.name not in _PLACEMENT),
        makes_tensor_on_device=any(argument.name == "device" for argument in arguments),
        output_count=len(overload._schema.returns),
        cost_rule=cost_rule,
    )


def _parameter(argument: torch.Argument) -> Parameter:
    kind = str(argument.real_type)
    optional = kind.startswith("Optional[")
    if optional:
        kind = kind.removeprefix("Optional[").removesuffix("]")
    return Parameter(argument.name, _KINDS[kind], optional=optional, keyword_only=argument.kwarg_only)


def _is_integer(argument: object) -> bool:
    return isinstance(argument, int) and not isinstance(argument, bool)


def _is_one_of(argument: object, texts: Collection[str]) -> bool:
    return isinstance(argument, str) and argument in texts


def _list_of(check: Callable[[object], bool]) -> Callable[[Argument], bool]:
    return lambda argument: isinstance(argument, list) and all(check(item) for item in argument)


_CHECKS: Final[dict[ArgumentKind, Callable[[Argument], bool]]] = {
    "tensor": lambda argument: isinstance(argument, Ref),
    "tensors": _list_of(lambda item: item is None or isinstance(item, Ref)),
    "int": _is_integer,
    "ints": _list_of(_is_integer),
    "bools": _list_of(lambda item: isinstance(item, bool)),
    "number": lambda argument: isinstance(argument, int | float) or _is_one_of(argument, _NON_FINITE),
    "bool": lambda argument: isinstance(argument, bool),
    "text": lambda argument: isinstance(argument, str),
    "dtype": lambda argument: _is_one_of(argument, TORCH_DTYPES),
}

OPS: Final[dict[str, Op]] = {
    op.name: op for rule, names in _COST_RULES.items() for op in (_row(name, rule) for name in names.split())
}
