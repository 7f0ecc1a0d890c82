"""From a traced torch graph to a program.

Every operation is written in its one canonical form (all arguments by name, dimensions counted from the
front, sizes spelled out), views that change nothing vanish, and an operation that repeats another is not
written again.
"""

import contextlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import getitem
from typing import Any, cast

import msgspec
import torch
from torch import Tensor, fx

from metal_kernels.errors import CaptureError, ProgramError, ProgramTooLarge, UncompiledOp
from metal_kernels.frontend.blame import unsupported_dtype, unsupported_node
from metal_kernels.frontend.canonical import Call, canonical, traced_call
from metal_kernels.frontend.decompositions import has_advice
from metal_kernels.lowering.lower import lower as definitions_of
from metal_kernels.program.graph import (
    DTYPE_NAMES,
    Argument,
    Graph,
    Input,
    Kind,
    Node,
    Output,
    OutputRole,
    Program,
    Ref,
    Value,
)
from metal_kernels.program.ops import OPS
from metal_kernels.program.random import SEEDS
from metal_kernels.program.validate import program_validate


@dataclass(frozen=True)
class Slot:
    """One input of the traced function. A `constant` is given to the trace and stored in the program."""

    role: Any
    key: str
    tensor: Tensor


def lower(
    traced: fx.GraphModule, *, kind: Kind, slots: Sequence[Slot], returned: Sequence[tuple[str, str]]
) -> Program:
    """The program of `traced`, which takes `slots` and returns a value for each (role, key) of `returned`.

    It is valid, and there are kernels for all of it: what a phone cannot run is refused here, with its place in the
    module.
    """
    _drop_write_backs(traced.graph)
    # An operation that people write explains more than what torch made of it.
    for node in traced.graph.nodes:
        if has_advice(str(node.target)):
            raise unsupported_node(node)
    writer = _Writer(traced, slots)
    for node in traced.graph.nodes:
        writer.write(node)
    results = writer.results(returned)
    nodes, used = _without_unused(writer.nodes, used={output.value for output in results})
    constants = {name: tensor for name, tensor in writer.constants.items() if name in used}
    declared = [_value(name, tensor) for name, tensor in constants.items()]
    inputs = [
        entry
        for entry in writer.inputs
        if entry.role != "scalar" or entry.key not in SEEDS or entry.value.name in used
    ]
    program = Program(Graph(kind, inputs, declared, nodes, results), constants)
    with writer.blamed():
        program_validate(program)
        definitions_of(program)
    return program


def _drop_write_backs(graph: fx.Graph) -> None:
    """Tracing ends by copying new buffers into the old; a program returns them instead."""
    for node in list(graph.nodes):
        if node.target is torch.ops.aten.copy_.default and not node.users:
            graph.erase_node(node)
    graph.eliminate_dead_code()


def _without_unused(nodes: Sequence[Node], *, used: set[str]) -> tuple[list[Node], set[str]]:
    """The nodes and outputs that `used` depends on, and the names of all values they read."""
    kept: list[Node] = []
    for node in reversed(nodes):
        outputs = [value if value is not None and value.name in used else None for value in node.outputs]
        if any(value is not None for value in outputs):
            used |= set(node.refs())
            kept.append(msgspec.structs.replace(node, outputs=outputs))
    return kept[::-1], used


def _value(name: str, tensor: Tensor) -> Value:
    return Value(name, DTYPE_NAMES[tensor.dtype], tuple(tensor.shape))


class _Writer:
    """Writes traced nodes one by one; keeps what each became."""

    def __init__(self, traced: fx.GraphModule, slots: Sequence[Slot]) -> None:
        self._traced = traced
        self._slots = iter(slots)
        self._became: dict[fx.Node, Value | list[Value | None]] = {}
        self._written: dict[bytes, Node] = {}
        self._returned: Sequence[fx.Node] = ()
        self._count = 0
        self._source: dict[str, fx.Node] = {}
        self._origin: dict[str, tuple[str, str]] = {}
        self.inputs: list[Input] = []
        self.constants: dict[str, Tensor] = {}
        self.nodes: list[Node] = []

    def write(self, node: fx.Node) -> None:
        self._writing = node
        match node.op:
            case "placeholder":
                self._became[node] = self._placeholder(next(self._slots))
            case "get_attr":
                self._became[node] = self._constant(getattr(self._traced, str(node.target)))
            case "output":
                self._returned = node.args[0]  # type: ignore[assignment]  # one flat list, by construction
            case _ if node.target is getitem:
                source, index = cast(tuple[fx.Node, int], node.args)
                self._became[node] = cast(list[Value], self._became[source])[index]
            case _ if node.target is torch.ops.aten.split_with_sizes.default:
                self._became[node] = self._split(node)
            case _:
                self._became[node] = self._operation(node)

    def results(self, returned: Sequence[tuple[str, str]]) -> list[Output]:
        """The program's outputs. State that comes out as it went in is not among them."""
        outputs = []
        for (role, key), node in zip(returned, self._returned, strict=True):
            value = self._one(node)
            if self._origin.get(value.name) == (role, key):
                continue
            if role == "constant":
                raise CaptureError(
                    f"The module changes its non-persistent buffer '{key}'; register it with persistent=True "
                    "to make it part of the model's state.",
                    field=key,
                )
            outputs.append(Output(cast(OutputRole, role), key, value.name))
        return outputs

    @contextlib.contextmanager
    def blamed(self) -> Iterator[None]:
        """Turn an error that names a node of the program into one that names the place in the module."""
        try:
            yield
        except (ProgramTooLarge, CaptureError):
            raise
        except (ProgramError, UncompiledOp) as error:
            node = self._source.get(error.field or "")
            if node is None:
                raise
            raise unsupported_node(node, reason=error.message) from error

    def _one(self, node: fx.Node) -> Value:
        return cast(Value, self._became[node])

    def _placeholder(self, slot: Slot) -> Value:
        if slot.role == "constant":
            value = self._constant(slot.tensor)
        else:
            value = _value(f"in{len(self.inputs)}", slot.tensor)
            self.inputs.append(Input(slot.role, slot.key, value))
        self._origin[value.name] = (slot.role, slot.key)
        return value

    def _constant(self, tensor: Tensor) -> Value:
        name = f"c{len(self.constants)}"
        self.constants[name] = tensor.detach().clone()
        return _value(name, tensor)

    def _operation(self, node: fx.Node) -> Value | list[Value | None]:
        if not isinstance(node.target, torch._ops.OpOverload):
            raise unsupported_node(node)
        call = traced_call(node)
        if call.changes_nothing():
            return self._one(call.args["self"])
        call = canonical(call)
        op = OPS.get(call.op)
        if op is None:
            raise unsupported_node(node)
        for tensor in call.results:
            if tensor is not None and tensor.dtype not in DTYPE_NAMES:
                raise unsupported_dtype(node, tensor.dtype)
        args = {
            parameter.name: self._number_as_tensor(call.args[parameter.name])
            if parameter.kind == "tensor"
            else self._argument(call.args[parameter.name])
            for parameter in op.parameters
        }
        return self._append(call, args)

    def _split(self, node: fx.Node) -> list[Value | None]:
        """A slice for each part."""
        call = traced_call(node)
        source, dim, start = call.args["self"], call.args["dim"] % call.result.dim(), 0
        parts: list[Value | None] = []
        for part in call.results:
            end = start + cast(Tensor, part).shape[dim]
            args = {"self": self._argument(source), "dim": dim, "start": start, "end": end, "step": 1}
            parts.append(cast(Value, self._append(Call("aten.slice.Tensor", {}, [part], many=False), args)))
            start = end
        return parts

    def _append(self, call: Call, args: dict[str, Argument]) -> Value | list[Value | None]:
        """Write the operation down, unless the same one was written before."""
        key = msgspec.json.encode([call.op, args])
        written = self._written.get(key)
        if written is None:
            written = Node(call.op, args, [self._new_value(tensor) for tensor in call.results])
            self._written[key] = written
            self._source[written.name] = self._writing
            self.nodes.append(written)
        return written.outputs if call.many else written.outputs[0]  # type: ignore[return-value]

    def _number_as_tensor(self, argument: Any) -> Argument:
        """Torch takes a number for a tensor in places where no scalar form of the operation exists."""
        if not isinstance(argument, int | float):
            return self._argument(argument)
        tensor = torch.empty(
            (), dtype=torch.float32 if isinstance(argument, float) else torch.int64, device="meta"
        )
        fill = Call("aten.full.default", {}, [tensor], many=False)
        args = {"size": [], "fill_value": self._argument(argument), "dtype": DTYPE_NAMES[tensor.dtype]}
        return Ref(cast(Value, self._append(fill, args)).name)

    def _new_value(self, tensor: Tensor | None) -> Value | None:
        if tensor is None:
            return None
        self._count += 1
        return _value(f"v{self._count - 1}", tensor)

    def _argument(self, argument: Any) -> Argument:
        if isinstance(argument, fx.Node):
            return Ref(self._one(argument).name)
        if isinstance(argument, list | tuple):
            return [self._argument(item) for item in argument]  # type: ignore[misc]
        if isinstance(argument, torch.dtype):
            return DTYPE_NAMES[argument]
        if isinstance(argument, float) and not math.isfinite(argument):
            return "NaN" if math.isnan(argument) else "Infinity" if argument > 0 else "-Infinity"
        return argument  # type: ignore[no-any-return]
