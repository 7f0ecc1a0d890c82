"""Replays a program with torch: the oracle for other runtimes, and the runtime of devices without a GPU."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, TypeAlias, cast

import torch
from torch import Tensor, nn

from metal_kernels.errors import BadFeed, RuntimeFailure, first_line
from metal_kernels.program.graph import STATE_ROLES, TORCH_DTYPES, Graph, Input, Node, Program, Ref, Value
from metal_kernels.program.memory import last_uses
from metal_kernels.program.ops import OPS
from metal_kernels.program.random import SEEDS, seed_halves

State: TypeAlias = dict[str, Tensor]


@dataclass(frozen=True)
class Batch:
    """The rows of one step."""

    inputs: tuple[Tensor, ...]
    target: Tensor


@dataclass(frozen=True)
class TrainingRun:
    """The state after the last step, and the loss of every step."""

    state: State
    losses: list[float]


class ReferenceRuntime:
    """Runs one program. Operations are looked up once; values are dropped after their last use.

    States and batches are never changed in place; a new state may share tensors with the old.
    """

    def __init__(self, program: Program) -> None:
        graph = program.graph
        self._program = program
        self._state_inputs = program.inputs(*STATE_ROLES)
        self._batch_inputs = program.inputs("input")
        self._slot_of = {name: index for index, name in enumerate(_names(graph))}
        self._constants = {self._slot_of[name]: tensor for name, tensor in program.constants.items()}
        self._instructions = _instructions(graph, self._slot_of)
        self._state_outputs = [
            (output.key, self._slot_of[output.value])
            for output in graph.outputs
            if output.role in STATE_ROLES
        ]
        self._result = next(
            self._slot_of[output.value] for output in graph.outputs if output.role in ("loss", "predictions")
        )

    def step(
        self,
        state: Mapping[str, Tensor],
        *,
        inputs: Sequence[Tensor],
        target: Tensor,
        lr: float,
        step: int,
        seed: int = 0,
    ) -> tuple[State, Tensor]:
        """One training step: the new state and the loss, a scalar tensor.

        `step` is 1 for the first; `seed` (below 2^53) is the shard's, and dropout follows from it.
        """
        scalars = {
            "lr": torch.tensor(lr, dtype=torch.float32),
            "step": torch.tensor(step, dtype=torch.float32),
            **dict(zip(SEEDS, (_signed(half) for half in seed_halves(seed)), strict=True)),
        }
        feeds = [(entry, scalars[entry.key]) for entry in self._program.inputs("scalar")]
        feeds += [(entry, target) for entry in self._program.inputs("target")]
        values = self._run([*self._state_feeds(state), *self._batch_feeds(inputs), *feeds])
        return {**state, **{key: values[slot] for key, slot in self._state_outputs}}, values[self._result]

    def run_steps(
        self,
        state: Mapping[str, Tensor],
        batches: Iterable[Batch],
        *,
        lr: Callable[[int], float],
        first_step: int = 1,
        seed: int = 0,
    ) -> TrainingRun:
        """A step for each batch; `lr` gives the learning rate of a step. Losses are read once, at the end."""
        current = dict(state)
        losses: list[Tensor] = []
        for step, batch in enumerate(batches, start=first_step):
            current, loss = self.step(
                current, inputs=batch.inputs, target=batch.target, lr=lr(step), step=step, seed=seed
            )
            losses.append(loss)
        return TrainingRun(current, torch.stack(losses).tolist() if losses else [])

    def predict(self, state: Mapping[str, Tensor], *inputs: Tensor) -> Tensor:
        """The predictions of a forward program for one batch of its captured size."""
        values = self._run([*self._state_feeds(state), *self._batch_feeds(inputs)])
        return cast(Tensor, values[self._result])

    def _state_feeds(self, state: Mapping[str, Tensor]) -> list[tuple[Input, Tensor]]:
        try:
            return [(entry, state[entry.key]) for entry in self._state_inputs]
        except KeyError as error:
            raise BadFeed(
                f"The state lacks '{error.args[0]}'; give every tensor of the program's state."
            ) from error

    def _batch_feeds(self, inputs: Sequence[Tensor]) -> list[tuple[Input, Tensor]]:
        if len(inputs) != len(self._batch_inputs):
            raise BadFeed(
                f"The program takes {len(self._batch_inputs)} inputs; {len(inputs)} were given.",
                field="inputs",
            )
        return list(zip(self._batch_inputs, inputs, strict=True))

    def _run(self, feeds: list[tuple[Input, Tensor]]) -> list[Any]:
        values: list[Any] = [None] * len(self._slot_of)
        for slot, tensor in self._constants.items():
            values[slot] = tensor
        for entry, tensor in feeds:
            _check_feed(entry, tensor)
            values[self._slot_of[entry.value.name]] = tensor
        with torch.no_grad():
            try:
                for instruction in self._instructions:
                    node, call, template, fills, keywords, outputs, dead = instruction
                    arguments = template[:]
                    for position, source in fills:
                        arguments[position] = source(values)
                    result = call(*arguments, **keywords)
                    for place, part in zip(outputs, result if len(outputs) > 1 else (result,), strict=True):
                        if place is not None:
                            values[place] = part
                    for slot in dead:
                        values[slot] = None
            # Data can be at fault in a valid program (a token outside the vocabulary); torch reports that by
            # whichever exception the operation raises.
            except Exception as error:
                raise RuntimeFailure(f"Node '{node}' failed: {first_line(error)}", field=node) from error
        return values


def initial_state(module: nn.Module, program: Program) -> State:
    """What training starts from: the module's parameters and buffers, copied, and zeros for the optimizer."""
    tensors = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    state: State = {}
    for entry in program.inputs("parameter", "buffer"):
        if entry.key not in tensors:
            raise BadFeed(f"The module has no '{entry.key}', which the program needs.", field=entry.key)
        tensor = tensors[entry.key].detach().clone()
        _check_feed(entry, tensor)
        state[entry.key] = tensor
    return {**state, **optimizer_zeros(program)}


def optimizer_zeros(program: Program) -> State:
    """The optimizer slots of a program at the start of a shard."""
    return {entry.key: _zeros(entry.value) for entry in program.inputs("optimizer")}


_Getter: TypeAlias = Callable[[list[Any]], Any]
_Instruction: TypeAlias = tuple[
    str,  # the node's name
    Callable[..., Any],  # the torch operation
    list[Any],  # positional arguments, None where a value goes
    list[tuple[int, _Getter]],  # which value goes where
    dict[str, Any],  # keyword arguments, never values
    list[int | None],  # where the results go
    list[int],  # values that nobody needs any more
]


def _names(graph: Graph) -> list[str]:
    names = [entry.value.name for entry in graph.inputs] + [value.name for value in graph.constants]
    return names + [value.name for node in graph.nodes for value in node.outputs if value is not None]


def _instructions(graph: Graph, slot_of: Mapping[str, int]) -> list[_Instruction]:
    dead_after: list[list[int]] = [[] for _ in graph.nodes]
    for name, index in last_uses(graph).items():
        if index < len(graph.nodes):
            dead_after[index].append(slot_of[name])
    return [_instruction(node, slot_of, dead) for node, dead in zip(graph.nodes, dead_after, strict=True)]


def _instruction(node: Node, slot_of: Mapping[str, int], dead: list[int]) -> _Instruction:
    op = OPS[node.op]
    positional, keywords = op.bind(node.args, lambda argument: argument)
    fills = [
        (position, _getter(argument, slot_of))
        for position, argument in enumerate(positional)
        if _has_ref(argument)
    ]
    template = [None if _has_ref(argument) else argument for argument in positional]
    outputs = [slot_of[value.name] if value is not None else None for value in node.outputs]
    return node.name, op.call, template, fills, keywords, outputs, dead


def _has_ref(argument: object) -> bool:
    return isinstance(argument, Ref) or (
        isinstance(argument, list) and any(isinstance(i, Ref) for i in argument)
    )


def _getter(argument: Any, slot_of: Mapping[str, int]) -> _Getter:
    if isinstance(argument, Ref):
        return itemgetter(slot_of[argument.ref])
    slots = [slot_of[item.ref] if item is not None else None for item in argument]
    return lambda values: [None if slot is None else values[slot] for slot in slots]


def _signed(word: int) -> Tensor:
    """A word of 32 bits as a program holds it."""
    return torch.tensor(word - 2**32 if word >= 2**31 else word, dtype=torch.int32)


def _zeros(value: Value) -> Tensor:
    return torch.zeros(value.shape, dtype=TORCH_DTYPES[value.dtype])


def _check_feed(entry: Input, tensor: Tensor) -> None:
    value = entry.value
    if tensor.shape != value.shape or tensor.dtype is not TORCH_DTYPES[value.dtype]:
        raise BadFeed(
            f"'{entry.key}' must be {value.dtype} {list(value.shape)}; it is {tensor.dtype} "
            f"{list(tensor.shape)}.",
            field=entry.key,
        )
