"""From a program's graph to loop nests: each node becomes a few definitions, by a table of rules.

A training step takes its batch from a data slice that is already in memory: row `order[step * batch + i]` of it is
row `i` of the batch. Its loss is kept under the number of the step. So nothing has to be sent or read during a run.
"""

from typing import Final

from metal_kernels.errors import UncompiledOp
from metal_kernels.ir.expr import Expr, Tensor, apply, cast, const, read, uniform
from metal_kernels.ir.kernel import UNIFORMS
from metal_kernels.ir.loops import Definition, LoopProgram, Map, axes_of
from metal_kernels.lowering import layout, pointwise, pooling, products, random, reductions, scatter
from metal_kernels.lowering.context import Call, Rule, tensor_of
from metal_kernels.program.graph import STATE_ROLES, Input, Program

RULES: Final[dict[str, Rule]] = {
    **pointwise.RULES,
    **layout.RULES,
    **reductions.RULES,
    **products.RULES,
    **pooling.RULES,
    **random.RULES,
    **scatter.RULES,
}

STEP_INDEX: Final = "step_index"
"""The uniform that counts the steps of a run from zero."""

RUNTIME_SIZED: Final = -1
"""The first extent of a tensor whose number of rows only the run knows."""

ORDER: Final = Tensor("order", "i32", (RUNTIME_SIZED,))
LOSSES: Final = Tensor("losses", "f32", (RUNTIME_SIZED,))


def lower(program: Program) -> LoopProgram:
    """Raise `UncompiledOp` for the first node that no rule covers."""
    tensors = {value.name: tensor_of(value) for value in program.graph.constants}
    inputs = {tensor.name: tensor for tensor in tensors.values()}
    definitions: list[Definition] = []
    for entry in program.graph.inputs:
        tensor = tensors[entry.value.name] = tensor_of(entry.value)
        if entry.role == "scalar":
            definitions.append(Map(tensor, (), cast(uniform(entry.key, UNIFORMS[entry.key]), tensor.dtype)))
        elif entry.role in STATE_ROLES or program.kind == "forward":
            inputs[tensor.name] = tensor
        else:
            data = inputs[data_name(entry)] = Tensor(
                data_name(entry), tensor.dtype, (RUNTIME_SIZED, *tensor.shape[1:])
            )
            inputs[ORDER.name] = ORDER
            definitions.append(_gather(tensor, data))
    for node in program.graph.nodes:
        rule = RULES.get(node.op)
        if rule is None:
            raise UncompiledOp(
                f"Node '{node.name}': {node.op} cannot be compiled to kernels yet.", field=node.name
            )
        rule(Call(node, tensors, definitions))
    return _with_outputs(program, tensors, LoopProgram(definitions, inputs, {}))


def data_name(entry: Input) -> str:
    """The name of the data slice that a batch input is gathered from."""
    return f"data.{entry.key}"


def _gather(batch: Tensor, data: Tensor) -> Map:
    if not batch.shape:
        raise UncompiledOp(
            f"The batch input '{data.name}' has no rows; give it a first dimension.", field=data.name
        )
    axes = axes_of(batch.shape)
    rows, *rest = axes
    place = uniform(STEP_INDEX, "i32") * batch.shape[0] + rows
    row = apply("max", read(ORDER, place), const(0, "i32"))
    return Map(batch, axes, read(data, row, *rest))


def _with_outputs(program: Program, tensors: dict[str, Tensor], loops: LoopProgram) -> LoopProgram:
    """Name what is kept. An output that is an input, or another output, is kept as a copy."""
    state: dict[tuple[str, str], str] = {
        (entry.role, entry.key): entry.value.name for entry in program.graph.inputs
    }
    updates: dict[str, str] = {}
    for output in program.graph.outputs:
        tensor = tensors[output.value]
        if output.role == "loss":
            loops.definitions.append(Map(LOSSES, (uniform(STEP_INDEX, "i32"),), read(tensor)))
            loops.outputs[LOSSES.name] = LOSSES
            continue
        if tensor.name in loops.inputs or tensor.name in loops.outputs:
            tensor = _copy(tensor, f"{tensor.name}.{len(loops.outputs)}", loops)
        loops.outputs[tensor.name] = tensor
        old = state.get((output.role, output.key))
        if old is not None:
            updates[old] = tensor.name
        else:
            loops.results[output.key] = tensor.name
    loops.updates = updates
    return loops


def _copy(tensor: Tensor, name: str, loops: LoopProgram) -> Tensor:
    copy = Tensor(name, tensor.dtype, tensor.shape)
    axes: tuple[Expr, ...] = axes_of(copy.shape)
    loops.definitions.append(Map(copy, axes, read(tensor, *axes)))
    return copy
