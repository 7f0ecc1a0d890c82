"""Is a program sound? Checked in full before anything of it runs.

In this order: limits, names and references, each node's operation and arguments, and last, node by node, that
the declared outputs follow from the inputs. For that the allow-listed operation runs on torch's meta device,
which computes shapes and dtypes without touching data or allocating memory. Outputs come last, with their
roles.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import Tensor

from metal_kernels.errors import (
    BadArgument,
    BadReference,
    ProgramFormatError,
    ProgramTooLarge,
    SpecMismatch,
    UnknownOp,
    first_line,
)
from metal_kernels.program.graph import (
    DTYPE_NAMES,
    MAX_EXACT_INTEGER,
    STATE_ROLES,
    TORCH_DTYPES,
    Argument,
    DType,
    Graph,
    Node,
    Program,
    Ref,
    Value,
)
from metal_kernels.program.ops import OPS, Op
from metal_kernels.program.rules import broken_rule

SCALARS: Final[dict[str, DType]] = {
    "lr": "float32",
    "step": "float32",
    "seed_low": "int32",
    "seed_high": "int32",
}
"""The numbers of a step; the seed is the shard's, as two words of 32 bits."""


@dataclass(frozen=True)
class Limits:
    """What a reader is willing to take on."""

    file_bytes: int = 256 * 2**20
    constant_bytes: int = 64 * 2**20
    tensor_bytes: int = 2**30
    nodes: int = 20_000
    values: int = 100_000
    dimensions: int = 8
    list_items: int = 1_000
    name_chars: int = 500


DEFAULT_LIMITS: Final = Limits()


def program_validate(program: Program, *, limits: Limits = DEFAULT_LIMITS) -> None:
    """Raise the `ProgramError` that says what is wrong with the program first; return if it is sound."""
    graph = program.graph
    _check_limits(graph, limits)
    _check_constants(program, limits)
    known = _Scope()
    for value in [*(entry.value for entry in graph.inputs), *graph.constants]:
        known.define(value)
    for node in graph.nodes:
        op = _checked_op(node, limits)
        known.require(node)
        _check_outputs_follow(op, node, known)
        for output in node.outputs:
            if output is not None:
                known.define(output, node)
    _check_roles(graph, known)


class _Scope:
    """The values defined so far."""

    def __init__(self) -> None:
        self.values: dict[str, Value] = {}
        self.makers: dict[str, Node] = {}

    def define(self, value: Value, maker: Node | None = None) -> None:
        if value.name in self.values:
            raise BadReference(f"Two values are named '{value.name}'; names are unique.", field=value.name)
        self.values[value.name] = value
        if maker is not None:
            self.makers[value.name] = maker

    def require(self, node: Node) -> None:
        for name in node.refs():
            if name not in self.values:
                raise BadReference(
                    f"Node '{node.name}' ({node.op}) uses '{name}' before any node defines it; nodes are "
                    "listed in the order in which they run.",
                    field=node.name,
                )

    def meta(self, argument: Any) -> Any:
        """The argument with each reference replaced by a tensor of that shape and dtype without data."""
        if isinstance(argument, Ref):
            value = self.values[argument.ref]
            return torch.empty(value.shape, dtype=TORCH_DTYPES[value.dtype], device="meta")
        if isinstance(argument, list):
            return [self.meta(item) for item in argument]
        return argument


def _all_values(graph: Graph) -> Iterable[Value]:
    yield from (entry.value for entry in graph.inputs)
    yield from graph.constants
    for node in graph.nodes:
        yield from (value for value in node.outputs if value is not None)


def _check_limits(graph: Graph, limits: Limits) -> None:
    if len(graph.nodes) > limits.nodes:
        raise ProgramTooLarge(f"The program has {len(graph.nodes)} nodes; the limit is {limits.nodes}.")
    count = len(graph.inputs) + len(graph.constants) + sum(len(node.outputs) for node in graph.nodes)
    if max(count, len(graph.outputs)) > limits.values:
        raise ProgramTooLarge(f"The program has {count} values; the limit is {limits.values}.")
    for value in _all_values(graph):
        _check_value(value, limits)
    for key in [entry.key for entry in graph.inputs] + [output.key for output in graph.outputs]:
        if not 0 < len(key) <= limits.name_chars:
            raise ProgramTooLarge(f"A key has {len(key)} characters; the limit is {limits.name_chars}.")


def _check_value(value: Value, limits: Limits) -> None:
    if not 0 < len(value.name) <= limits.name_chars:
        raise ProgramTooLarge(f"A name has {len(value.name)} characters; the limit is {limits.name_chars}.")
    if len(value.shape) > limits.dimensions:
        raise ProgramTooLarge(
            f"'{value.name}' has {len(value.shape)} dimensions; the limit is {limits.dimensions}.",
            field=value.name,
        )
    if any(size < 1 for size in value.shape):
        raise SpecMismatch(f"'{value.name}' has a size below 1 in {list(value.shape)}.", field=value.name)
    if value.size_bytes > limits.tensor_bytes:
        raise ProgramTooLarge(
            f"'{value.name}' takes {value.size_bytes} bytes; the limit is {limits.tensor_bytes}.",
            field=value.name,
        )


def _check_constants(program: Program, limits: Limits) -> None:
    declared = {value.name: value for value in program.graph.constants}
    if declared.keys() != program.constants.keys():
        different = min(declared.keys() ^ program.constants.keys())
        raise ProgramFormatError(
            f"Constant '{different}' is in the graph or in the file, not in both.", field=different
        )
    total_bytes = sum(value.size_bytes for value in declared.values())
    if total_bytes > limits.constant_bytes:
        raise ProgramTooLarge(
            f"The constants take {total_bytes} bytes; the limit is {limits.constant_bytes}."
        )
    for name, value in declared.items():
        _check_spec(value, program.constants[name], f"Constant '{name}'")


def _checked_op(node: Node, limits: Limits) -> Op:
    """The node's row of the allow-list, after its arguments were found to be those the row asks for."""
    op = OPS.get(node.op)
    if op is None:
        raise UnknownOp(
            f"Node '{node.name}' uses '{node.op:.80}', which is not an allowed operation.", field=node.name
        )
    wanted = {parameter.name for parameter in op.parameters}
    if node.args.keys() != wanted:
        different = ", ".join(sorted(node.args.keys() ^ wanted))
        raise BadArgument(
            f"Node '{node.name}' ({node.op}) has missing or unknown arguments: {different:.200}.",
            field=node.name,
        )
    for parameter in op.parameters:
        argument = node.args[parameter.name]
        if not parameter.accepts(argument):
            raise BadArgument(
                f"Node '{node.name}' ({node.op}): argument '{parameter.name}' must be a {parameter.kind}.",
                field=node.name,
            )
        _check_argument_size(node, argument, limits)
    return op


def _check_argument_size(node: Node, argument: Argument, limits: Limits) -> None:
    items: Sequence[object] = argument if isinstance(argument, list) else [argument]
    if len(items) > limits.list_items:
        raise ProgramTooLarge(
            f"Node '{node.name}' ({node.op}) has a list of {len(items)} items; the limit is "
            f"{limits.list_items}.",
            field=node.name,
        )
    if any(isinstance(item, int) and abs(item) > MAX_EXACT_INTEGER for item in items):
        raise BadArgument(f"Node '{node.name}' ({node.op}) has an integer above 2^53 - 1.", field=node.name)


def _check_outputs_follow(op: Op, node: Node, known: _Scope) -> None:
    if len(node.outputs) != op.output_count or all(value is None for value in node.outputs):
        raise SpecMismatch(
            f"Node '{node.name}' ({node.op}) declares {len(node.outputs)} outputs; the operation has "
            f"{op.output_count}.",
            field=node.name,
        )
    for declared, inferred in zip(node.outputs, _inferred(op, node, known), strict=True):
        if declared is not None:
            _check_spec(declared, inferred, f"Node '{node.name}' ({node.op})")


def _inferred(op: Op, node: Node, known: _Scope) -> Sequence[Tensor | None]:
    positional, keywords = op.bind(node.args, known.meta)
    if op.makes_tensor_on_device:
        keywords["device"] = "meta"
    try:
        wrong = broken_rule(node, known.values, known.makers)
        with torch.no_grad():
            result = op.call(*positional, **keywords)
    # Torch reports an impossible combination of arguments by whichever exception its inner layers raise.
    except Exception as error:
        raise SpecMismatch(
            f"Node '{node.name}' ({node.op}) cannot work on its arguments: {first_line(error)}",
            field=node.name,
        ) from error
    if wrong:
        raise SpecMismatch(
            f"Node '{node.name}' ({node.op}) cannot work on its arguments: {wrong}.", field=node.name
        )
    return list(result) if isinstance(result, tuple | list) else [result]


def _check_spec(declared: Value, actual: Tensor | None, who: str) -> None:
    if actual is None:
        raise SpecMismatch(
            f"{who} declares '{declared.name}', which the operation does not give.", field=declared.name
        )
    if tuple(actual.shape) != declared.shape or actual.dtype != TORCH_DTYPES[declared.dtype]:
        found = DTYPE_NAMES.get(actual.dtype, str(actual.dtype))
        raise SpecMismatch(
            f"{who} declares '{declared.name}' as {declared.dtype} {list(declared.shape)}; it is {found} "
            f"{list(actual.shape)}.",
            field=declared.name,
        )


def _check_roles(graph: Graph, known: _Scope) -> None:
    """Inputs and outputs are those that the program's kind has, and new state fits the state it replaces."""
    state: dict[tuple[str, str], Value] = {}
    for entry in graph.inputs:
        if (entry.role, entry.key) in state or (graph.kind == "forward" and entry.role in _TRAINING_INPUTS):
            raise BadReference(
                f"The input '{entry.role} {entry.key}' is given twice or out of place.", field=entry.key
            )
        if entry.role == "target" and entry.key != "target":
            raise BadReference("The target's key is 'target'.", field=entry.key)
        if entry.role == "scalar" and (entry.value.shape or entry.value.dtype != SCALARS.get(entry.key)):
            raise BadReference(
                f"A scalar is one number with one of the keys {', '.join(SCALARS)}, of the key's dtype.",
                field=entry.key,
            )
        state[entry.role, entry.key] = entry.value
    returned: set[tuple[str, str]] = set()
    for output in graph.outputs:
        where = (output.role, output.key)
        if output.value not in known.values or where in returned:
            raise BadReference(
                f"The output '{output.role} {output.key}' is undefined or given twice.", field=output.key
            )
        returned.add(where)
        if output.role in STATE_ROLES:
            _check_new_state(state.get(where), known.values[output.value], output.key)
    wanted = ("loss", "loss") if graph.kind == "training_step" else ("predictions", "predictions")
    results = {where for where in returned if where[0] not in STATE_ROLES}
    if results != {wanted}:
        raise ProgramFormatError(f"A program of kind {graph.kind} returns {wanted[0]} and no other result.")


_TRAINING_INPUTS: Final = ("optimizer", "target", "scalar")


def _check_new_state(old: Value | None, new: Value, key: str) -> None:
    if old is None:
        raise BadReference(f"The output '{key}' replaces state that the program does not take.", field=key)
    if (old.dtype, old.shape) != (new.dtype, new.shape):
        raise SpecMismatch(
            f"The new state '{key}' is {new.dtype} {list(new.shape)}; the old is {old.dtype} "
            f"{list(old.shape)}.",
            field=key,
        )
