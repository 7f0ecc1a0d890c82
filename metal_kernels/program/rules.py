"""What torch's shape inference lets through and its kernels rely on.

Inference looks at shapes alone, and for some operations not at all of them; some kernels then trust indices
without looking. Each rule here closes one such gap and says in a few words what is wrong, or None.
"""

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias, cast

import torch

from metal_kernels.program.graph import Argument, Node, Ref, Value

Values: TypeAlias = Mapping[str, Value]
Makers: TypeAlias = Mapping[str, Node]
Rule: TypeAlias = Callable[[Node, Values, Makers], str | None]


def broken_rule(node: Node, values: Values, makers: Makers) -> str | None:
    """What is wrong with a node whose arguments have the right types, if anything.

    `values` are those defined so far, `makers` the nodes that made them.
    """
    rule = RULES.get(node.op)
    return rule(node, values, makers) if rule else None


def _value(argument: Argument, values: Values) -> Value:
    return values[cast(Ref, argument).ref]


def _convolution(node: Node, values: Values, makers: Makers) -> str | None:
    dimensions = len(_value(node.args["input"], values).shape) - 2
    lists = [cast(list[int], node.args[name]) for name in ("stride", "dilation", "padding", "output_padding")]
    if any(len(numbers) != dimensions for numbers in lists):
        return "it needs one stride, dilation and padding for each dimension"
    if min(*lists[0], *lists[1], cast(int, node.args["groups"])) < 1:
        return "stride, dilation and groups must be at least 1"
    if min(*lists[2], *lists[3]) < 0:
        return "padding must not be negative"
    return None


def _convolution_backward(node: Node, values: Values, makers: Makers) -> str | None:
    wrong = _convolution(node, values, makers)
    if wrong:
        return wrong
    source, weight, gradient = (
        _value(node.args[name], values) for name in ("input", "weight", "grad_output")
    )
    names = ("stride", "padding", "dilation", "transposed", "output_padding", "groups")
    metas = [torch.empty(value.shape, device="meta") for value in (source, weight)]
    forward = torch.ops.aten.convolution.default(*metas, None, *(node.args[name] for name in names))
    if tuple(forward.shape) != gradient.shape:
        return f"the gradient should have the convolution's shape {list(forward.shape)}"
    wants_bias = cast(list[bool], node.args["output_mask"])[2]
    if wants_bias and node.args["bias_sizes"] != [forward.shape[1]]:
        return f"the bias has {forward.shape[1]} elements"
    return None


def _embedding_backward(node: Node, values: Values, makers: Makers) -> str | None:
    indices, gradient = _value(node.args["indices"], values), _value(node.args["grad_output"], values)
    if gradient.shape[:-1] != indices.shape:
        return "the gradient should have a row for each index"
    if node.args["scale_grad_by_freq"]:
        return "scaling by frequency is not supported"
    return None


def _pooling_backward(node: Node, values: Values, makers: Makers) -> str | None:
    """The kernel writes wherever the indices say, so they must be those of the same pooling."""
    forward = makers.get(cast(Ref, node.args["indices"]).ref)
    if forward is None or forward.op != "aten.max_pool2d_with_indices.default":
        return "the indices must come from max_pool2d_with_indices"
    indices = forward.outputs[1]
    if indices is None or indices.name != cast(Ref, node.args["indices"]).ref:
        return "the indices must be the second output of max_pool2d_with_indices"
    pooled = _value(forward.args["self"], values)
    if any(forward.args[name] != node.args[name] for name in forward.args if name != "self"):
        return "its pooling differs from the one that made the indices"
    if pooled.shape != _value(node.args["self"], values).shape:
        return "the indices were made for another shape"
    return None


def _softmax(node: Node, values: Values, makers: Makers) -> str | None:
    if _value(node.args["self"], values).dtype != "float32" or node.args["half_to_float"]:
        return "it takes float32"
    return None


def _remainder(node: Node, values: Values, makers: Makers) -> str | None:
    return "division by zero" if node.args["other"] == 0 else None


def _random_uniform(node: Node, values: Values, makers: Makers) -> str | None:
    wanted = {"seed_low": "int32", "seed_high": "int32", "step": "float32"}
    for name, dtype in wanted.items():
        value = _value(node.args[name], values)
        if value.shape or value.dtype != dtype:
            return f"{name} is one {dtype}"
    return None if 0 <= cast(int, node.args["stream"]) < 2**31 else "the stream lies in 0 <= stream < 2^31"


RULES: Final[Mapping[str, Rule]] = {
    "aten.convolution.default": _convolution,
    "aten.convolution_backward.default": _convolution_backward,
    "aten.embedding_dense_backward.default": _embedding_backward,
    "aten.max_pool2d_with_indices_backward.default": _pooling_backward,
    "aten._softmax.default": _softmax,
    "aten._log_softmax.default": _softmax,
    "nightshift.random_uniform.default": _random_uniform,
    "aten.fmod.Scalar": _remainder,
    "aten.remainder.Scalar": _remainder,
}
