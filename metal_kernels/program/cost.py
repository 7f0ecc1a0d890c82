"""How much work a program is, counted from its shapes alone.

FLOPs follow the usual convention (a multiply and an add are two) and ignore that some functions take longer
than others. Bytes are what each operation would read and write if it ran alone, before any fusion. Views move
nothing and are not dispatched.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import cast

from metal_kernels.program.graph import Node, Program, Ref, Value
from metal_kernels.program.ops import OPS

_SOFTMAX_FLOPS_PER_ELEMENT = 5  # maximum, subtract, exponential, sum, divide
_RANDOM_FLOPS_PER_ELEMENT = 100  # ten rounds of Philox by 16-bit halves give four numbers


@dataclass(frozen=True)
class OpCost:
    """The cost of all nodes of one operation."""

    dispatches: int
    flops: int
    bytes: int


@dataclass(frozen=True)
class Cost:
    """The cost of one run of a program."""

    by_op: Mapping[str, OpCost]

    @property
    def dispatches(self) -> int:
        return sum(cost.dispatches for cost in self.by_op.values())

    @property
    def flops(self) -> int:
        return sum(cost.flops for cost in self.by_op.values())

    @property
    def bytes(self) -> int:
        return sum(cost.bytes for cost in self.by_op.values())


def program_cost(program: Program) -> Cost:
    graph = program.graph
    values = {entry.value.name: entry.value for entry in graph.inputs}
    values |= {value.name: value for value in graph.constants}
    by_op: dict[str, OpCost] = {}
    for node in graph.nodes:
        values |= {value.name: value for value in node.outputs if value is not None}
        sofar = by_op.get(node.op, OpCost(0, 0, 0))
        rule = OPS[node.op].cost_rule
        by_op[node.op] = OpCost(
            dispatches=sofar.dispatches + (rule != "view"),
            flops=sofar.flops + _flops(node, values),
            bytes=sofar.bytes + _bytes(node, values),
        )
    return Cost(by_op)


def _flops(node: Node, values: Mapping[str, Value]) -> int:
    match OPS[node.op].cost_rule:
        case "pointwise":
            return _written(node).elements
        case "softmax":
            return _SOFTMAX_FLOPS_PER_ELEMENT * _written(node).elements
        case "random":
            return _RANDOM_FLOPS_PER_ELEMENT * _written(node).elements
        case "reduction":
            return max(values[name].elements for name in node.refs())
        case "matmul":
            return _matmul_flops(node, values)
        case "convolution":
            return _convolution_flops(node, values)
        case _:
            return 0


def _bytes(node: Node, values: Mapping[str, Value]) -> int:
    written_bytes = sum(value.size_bytes for value in node.outputs if value is not None)
    match OPS[node.op].cost_rule:
        case "view":
            return 0
        case "fill" | "random":
            return written_bytes
        case "move":
            return 2 * written_bytes  # only what is picked is read, not the whole table
        case _:
            return written_bytes + sum(values[name].size_bytes for name in set(node.refs()))


def _written(node: Node) -> Value:
    return next(value for value in node.outputs if value is not None)


def _argument(node: Node, name: str, values: Mapping[str, Value]) -> Value:
    return values[cast(Ref, node.args[name]).ref]


def _matmul_flops(node: Node, values: Mapping[str, Value]) -> int:
    written = _written(node)
    left = _argument(node, "mat1" if node.op == "aten.addmm.default" else "self", values)
    added = written.elements if node.op == "aten.addmm.default" else 0
    return 2 * written.elements * left.shape[-1] + added


def _convolution_flops(node: Node, values: Mapping[str, Value]) -> int:
    """Each weight meets each position of the output (of the input, when transposed) once per sample.

    The backward pass does that once for the input's gradient and once for the weight's, as far as they are
    wanted.
    """
    weight = _argument(node, "weight", values)
    source = _argument(node, "input", values)
    backward = node.op == "aten.convolution_backward.default"
    result = _argument(node, "grad_output", values) if backward else _written(node)
    met = source if node.args["transposed"] else result
    once = 2 * weight.elements * met.shape[0] * prod(met.shape[2:])
    if not backward:
        return once + (result.elements if node.args["bias"] is not None else 0)
    for_input, for_weight, for_bias = (value is not None for value in node.outputs)
    return once * (for_input + for_weight) + result.elements * for_bias
