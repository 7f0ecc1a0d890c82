"""The one way to write each operation: every argument by name, nothing left to defaults or to counting from
the end.

A reader in another language then needs no knowledge of torch's conventions: no negative dimensions, no `-1`
sizes, no open-ended slices, no numbers in place of tensors.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final, cast

import torch
from torch import Tensor, fx

from metal_kernels.frontend.decompositions import FILLS, FULL_REDUCTIONS, IDENTITIES, SCALAR_FORMS


@dataclass(frozen=True)
class Call:
    """One traced operation: arguments by schema name, `fx.Node`s for tensors; its results as fake tensors."""

    op: str
    args: dict[str, Any]
    results: list[Tensor | None]
    many: bool

    @property
    def result(self) -> Tensor:
        return cast(Tensor, self.results[0])

    def changes_nothing(self) -> bool:
        """Whether the result has the elements, order, shape and dtype of the argument `self`."""
        if self.op in IDENTITIES:
            return True
        if self.op not in _IDENTITIES_OF_EQUAL_SHAPE:
            return False
        argument = _fake(self.args["self"])
        return argument.shape == self.result.shape and argument.dtype == self.result.dtype


def traced_call(node: fx.Node) -> Call:
    """The call that a traced node stands for, with its defaults filled in."""
    schema = cast(torch._ops.OpOverload, node.target)._schema
    args = {
        argument.name: node.args[index]
        if index < len(node.args)
        else node.kwargs.get(argument.name, argument.default_value)
        for index, argument in enumerate(schema.arguments)
    }
    results = node.meta["val"]
    many = isinstance(results, tuple | list)
    return Call(str(node.target), args, list(results) if many else [results], many)


def canonical(call: Call) -> Call:
    """The same call in its canonical form."""
    if call.op in FILLS:
        return _fill(call)
    if call.op in FULL_REDUCTIONS:
        call = replace(call, op=FULL_REDUCTIONS[call.op], args=call.args | {"dim": None, "keepdim": False})
    if call.op == "aten.sub.Tensor" and not isinstance(call.args["self"], fx.Node):
        swapped = {"self": call.args["other"], "other": call.args["self"], "alpha": call.args["alpha"]}
        return replace(call, op="aten.rsub.Scalar", args=swapped)
    scalar_form = SCALAR_FORMS.get(call.op)
    if scalar_form and not isinstance(call.args.get("other", call.args.get("exponent")), fx.Node):
        call = replace(call, op=scalar_form)
    rule = _RULES.get(call.op, _count_dimensions_from_front)
    return rule(call)


_IDENTITIES_OF_EQUAL_SHAPE: Final = frozenset(
    {"aten.view.default", "aten._unsafe_view.default", "aten.expand.default", "aten._to_copy.default"}
)


def _fake(node: fx.Node) -> Tensor:
    return cast(Tensor, node.meta["val"])


def _fill(call: Call) -> Call:
    value = FILLS[call.op]
    if value is None:
        value = call.args["s" if call.op == "aten.scalar_tensor.default" else "fill_value"]
    return _full(replace(call, op="aten.full.default", args={"fill_value": value}))


def _full(call: Call) -> Call:
    args = {
        "size": list(call.result.shape),
        "fill_value": call.args["fill_value"],
        "dtype": call.result.dtype,
    }
    return replace(call, args=args)


def _arange(call: Call) -> Call:
    return replace(call, args=call.args | {"dtype": call.result.dtype})


def _view(call: Call) -> Call:
    return replace(
        call, op="aten.view.default", args={"self": call.args["self"], "size": list(call.result.shape)}
    )


def _expand(call: Call) -> Call:
    return replace(call, args=call.args | {"size": list(call.result.shape)})


def _slice(call: Call) -> Call:
    call = _count_dimensions_from_front(call)
    length = _fake(call.args["self"]).shape[call.args["dim"]]
    start, end, _ = slice(call.args["start"], call.args["end"]).indices(length)
    return replace(call, args=call.args | {"start": start, "end": max(start, end)})


def _select(call: Call) -> Call:
    call = _count_dimensions_from_front(call)
    length = _fake(call.args["self"]).shape[call.args["dim"]]
    return replace(call, args=call.args | {"index": call.args["index"] % length})


def _count_in_result(call: Call) -> Call:
    rank = call.result.dim()
    return replace(call, args=call.args | {"dim": call.args["dim"] % rank})


def _reduce(call: Call) -> Call:
    """No dimensions means all of them."""
    rank = _fake(call.args["self"]).dim()
    dims = call.args["dim"]
    return replace(
        call, args=call.args | {"dim": [dim % rank for dim in dims] if dims and rank else list(range(rank))}
    )


def _pool(call: Call) -> Call:
    """An omitted stride is the kernel's size; one number stands for both directions."""
    args = dict(call.args)
    args["stride"] = args["stride"] or args["kernel_size"]
    for name in ("kernel_size", "stride", "padding", "dilation"):
        if name in args and len(args[name]) == 1:
            args[name] = list(args[name]) * 2
    return replace(call, args=args)


def _convolution(call: Call) -> Call:
    """One number stands for every direction."""
    directions = _fake(call.args["input"]).dim() - 2
    args = dict(call.args)
    for name in ("stride", "padding", "dilation", "output_padding"):
        if len(args[name]) == 1:
            args[name] = list(args[name]) * directions
    return replace(call, args=args)


def _count_dimensions_from_front(call: Call) -> Call:
    source = call.args.get("self")
    if not isinstance(source, fx.Node):
        return call
    rank = max(_fake(source).dim(), 1)
    args = dict(call.args)
    for name in ("dim", "dims"):
        if isinstance(args.get(name), int):
            args[name] %= rank
        elif isinstance(args.get(name), list | tuple):
            args[name] = [dim % rank for dim in args[name]]
    return replace(call, args=args)


_RULES: Final[dict[str, Callable[[Call], Call]]] = {
    "aten.full.default": _full,
    "aten.arange.start_step": _arange,
    "aten.view.default": _view,
    "aten._unsafe_view.default": _view,
    "aten.expand.default": _expand,
    "aten.slice.Tensor": _slice,
    "aten.slice_scatter.default": _slice,
    "aten.select.int": _select,
    "aten.unsqueeze.default": _count_in_result,
    "aten.cat.default": _count_in_result,
    "aten.sum.dim_IntList": _reduce,
    "aten.mean.dim": _reduce,
    "aten.amax.default": _reduce,
    "aten.amin.default": _reduce,
    "aten.var.correction": _reduce,
    "aten.var_mean.correction": _reduce,
    "aten.convolution.default": _convolution,
    "aten.convolution_backward.default": _convolution,
    "aten.max_pool2d_with_indices.default": _pool,
    "aten.max_pool2d_with_indices_backward.default": _pool,
    "aten.avg_pool2d.default": _pool,
    "aten.avg_pool2d_backward.default": _pool,
}
