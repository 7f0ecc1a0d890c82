"""The parts of a program, as plain typed data.

A program is one captured step of a model: a straight list of nodes over named values, no control flow, static
shapes. Values have no strides: how a value lies in memory is the runtime's business.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Annotated, Final, Literal, TypeAlias

import msgspec
import torch
from torch import Tensor

DType: TypeAlias = Literal["float32", "int64", "int32", "bool"]
TORCH_DTYPES: Final[dict[DType, torch.dtype]] = {
    "float32": torch.float32,
    "int64": torch.int64,
    "int32": torch.int32,
    "bool": torch.bool,
}
DTYPE_NAMES: Final[dict[torch.dtype, DType]] = {dtype: name for name, dtype in TORCH_DTYPES.items()}

MAX_EXACT_INTEGER: Final = 2**53 - 1
"""The largest integer that every JSON reader keeps exact."""

ExactInteger: TypeAlias = Annotated[int, msgspec.Meta(ge=-MAX_EXACT_INTEGER, le=MAX_EXACT_INTEGER)]

DeltaBits: TypeAlias = Literal[4, 8]
"""How many bits each difference of a delta takes."""

Kind: TypeAlias = Literal["training_step", "forward"]
StateRole: TypeAlias = Literal["parameter", "buffer", "optimizer"]
InputRole: TypeAlias = StateRole | Literal["input", "target", "scalar"]
OutputRole: TypeAlias = StateRole | Literal["loss", "predictions"]
STATE_ROLES: Final[tuple[StateRole, ...]] = ("parameter", "buffer", "optimizer")


class Ref(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The use of a value by its name."""

    ref: str


Argument: TypeAlias = bool | int | float | str | Ref | list[bool | int | float | Ref | None] | None
"""Numbers that JSON lacks are the texts "Infinity", "-Infinity" and "NaN"; a dtype is its name."""


class Value(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A named tensor."""

    name: str
    dtype: DType
    shape: tuple[ExactInteger, ...]

    @property
    def elements(self) -> int:
        return prod(self.shape)

    @property
    def size_bytes(self) -> int:
        return self.elements * TORCH_DTYPES[self.dtype].itemsize


class Input(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A value given to each run. `key` is the state's name, `input0`, ..., `target`, or a scalar's key."""

    role: InputRole
    key: str
    value: Value


class Node(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One operation. `args` has all its arguments by name; an output that nobody asked for is null."""

    op: str
    args: dict[str, Argument]
    outputs: list[Value | None]

    @property
    def name(self) -> str:
        """The name of the node's first value, which stands for the node in messages."""
        return next((value.name for value in self.outputs if value is not None), self.op)

    def refs(self) -> Iterator[str]:
        """The names of the values it reads, in order, with repeats."""
        for argument in self.args.values():
            for item in argument if isinstance(argument, list) else [argument]:
                if isinstance(item, Ref):
                    yield item.ref


class Output(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A value that a run returns: the new state of `key`, or the `loss`, or the `predictions`."""

    role: OutputRole
    key: str
    value: str


class Graph(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    kind: Kind
    inputs: list[Input]
    constants: list[Value]
    nodes: list[Node]
    outputs: list[Output]


@dataclass(frozen=True)
class Program:
    """A graph with the tensors of its constants, by value name.

    State that a step does not change (frozen parameters, constant buffers) has an input and no output.
    `delta_bits` says how devices encode what a training step's shard moved.
    """

    graph: Graph
    constants: Mapping[str, Tensor] = field(default_factory=dict)
    delta_bits: DeltaBits = 8

    @property
    def kind(self) -> Kind:
        return self.graph.kind

    def inputs(self, *roles: str) -> list[Input]:
        """Its inputs of these roles, in the program's order."""
        return [entry for entry in self.graph.inputs if entry.role in roles]

    @property
    def batch(self) -> int:
        """The rows of a batch; 1 where no input has any."""
        shapes = [entry.value.shape for entry in self.inputs("input", "target")]
        return next((shape[0] for shape in shapes if shape), 1)

    @property
    def state_spec(self) -> dict[str, Value]:
        """All state by key: parameters, buffers and optimizer slots."""
        return {entry.key: entry.value for entry in self.inputs(*STATE_ROLES)}

    @property
    def model_spec(self) -> dict[str, Value]:
        """The state that travels between devices and server: parameters and buffers."""
        return {entry.key: entry.value for entry in self.inputs("parameter", "buffer")}
