"""Runs compiled programs on any backend: what is the same for every GPU.

State, the data slice and the order of rows are sent once; all steps of a run are dispatched without reading anything
back; losses and state are read at the end.
"""

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from metal_kernels.compiler.compiled import CompiledProgram
from metal_kernels.errors import BadFeed
from metal_kernels.ir.scalars import NUMPY_DTYPES, Scalar
from metal_kernels.program.graph import TORCH_DTYPES, DType, Program, Value
from metal_kernels.program.random import seed_halves
from metal_kernels.runtimes.reference import State, TrainingRun

Array: TypeAlias = NDArray[Any]


@dataclass(frozen=True)
class StepNumbers:
    """The record of one step, as kernels see it."""

    lr: float
    step: float
    step_index: int
    seed_low: int = 0
    seed_high: int = 0

    def record(self) -> bytes:
        """In the order of `ir.kernel.UNIFORMS`."""
        return struct.pack("<ffiII", self.lr, self.step, self.step_index, self.seed_low, self.seed_high)


class Backend(Protocol):
    """A GPU with the compiled program's pipelines and buffers. Buffers are known by their position in the program."""

    def write(self, buffer: int, values: Array) -> None:
        """Fill a buffer, making it if need be; its size is that of `values`."""

    def reserve(self, buffer: int, elements: int) -> None:
        """Make a buffer whose first content does not matter."""

    def read(self, buffer: int, elements: int) -> Array:
        """Wait for all work and fetch the first `elements` of a buffer as raw four-byte words."""

    def run(self, steps: Sequence[StepNumbers]) -> None:
        """Do every dispatch and copy once for each step."""


class CompiledRuntime:
    """One program on one backend."""

    def __init__(self, program: Program, compiled: CompiledProgram, backend: Backend) -> None:
        self._program = program
        self._compiled = compiled
        self._backend = backend
        for position, buffer in enumerate(compiled.buffers):
            if buffer.role in ("scratch", "result"):
                backend.reserve(position, buffer.elements)
            elif buffer.role == "constant":
                backend.write(position, _words(program.constants[buffer.key], buffer.key))

    def train(
        self,
        state: Mapping[str, Tensor],
        *,
        inputs: Sequence[Tensor],
        target: Tensor,
        order: Sequence[Tensor],
        lr: Callable[[int], float],
        first_step: int = 1,
        seed: int = 0,
    ) -> TrainingRun:
        """A step for each entry of `order`, the indices of the rows of `inputs` and `target` that it trains on.

        `seed` (below 2^53) is the shard's; dropout follows from it.
        """
        data = {"target": target, **{f"input{position}": rows for position, rows in enumerate(inputs)}}
        self._check_order(order, len(target))
        self._write("state", state)
        self._write("data", data)
        self._write("order", {"": torch.stack(list(order))})
        for position in self._positions("losses"):
            self._backend.reserve(position, len(order))
        self._backend.run(
            [
                StepNumbers(lr(first_step + index), first_step + index, index, *seed_halves(seed))
                for index in range(len(order))
            ]
        )
        losses = self._backend.read(next(iter(self._positions("losses"))), len(order)).view(np.float32)
        return TrainingRun({**state, **self._read_state()}, losses.tolist())

    def predict(self, state: Mapping[str, Tensor], *inputs: Tensor) -> Tensor:
        """The predictions of a forward program for one batch of its captured size."""
        self._write("state", state)
        self._write("input", {f"input{position}": tensor for position, tensor in enumerate(inputs)})
        self._backend.run([StepNumbers(0.0, 0.0, 0)])
        output = next(entry for entry in self._program.graph.outputs if entry.role == "predictions")
        value = next(value for value in _values(self._program) if value.name == output.value)
        position = next(iter(self._positions("result")))
        words = self._backend.read(position, value.elements)
        return _tensor(words, self._compiled.buffers[position].dtype, value.dtype, value.shape)

    def _positions(self, role: str) -> list[int]:
        return [position for position, buffer in enumerate(self._compiled.buffers) if buffer.role == role]

    def _write(self, role: str, tensors: Mapping[str, Tensor]) -> None:
        for position in self._positions(role):
            key = self._compiled.buffers[position].key
            if key not in tensors:
                raise BadFeed(f"The {role} lacks '{key}'; give every tensor of the program.", field=key)
            self._backend.write(position, _words(tensors[key], key))

    def _read_state(self) -> State:
        spec = self._program.state_spec
        replaced = {output.key for output in self._program.graph.outputs}
        state: State = {}
        for position in self._positions("state"):
            buffer = self._compiled.buffers[position]
            if buffer.key in replaced:
                value = spec[buffer.key]
                words = self._backend.read(position, value.elements)
                state[buffer.key] = _tensor(words, buffer.dtype, value.dtype, value.shape)
        return state

    def _check_order(self, order: Sequence[Tensor], rows: int) -> None:
        for indices in order:
            if (
                indices.shape != (self._compiled.batch,)
                or int(indices.min()) < 0
                or int(indices.max()) >= rows
            ):
                raise BadFeed(
                    f"Each step takes {self._compiled.batch} row indices from 0 to {rows - 1}.", field="order"
                )


def _values(program: Program) -> Iterator[Value]:
    yield from (entry.value for entry in program.graph.inputs)
    yield from program.graph.constants
    yield from (value for node in program.graph.nodes for value in node.outputs if value is not None)


_INT32: Final = np.iinfo(np.int32)


def _words(tensor: Tensor, key: str) -> Array:
    """A tensor as the four-byte words that kernels read."""
    array = tensor.detach().cpu().contiguous().numpy().reshape(-1)
    if array.dtype == np.int64:
        if array.size and (array.min() < _INT32.min or array.max() > _INT32.max):
            raise BadFeed(f"'{key}' has integers beyond 32 bits, which phones do not have.", field=key)
        array = array.astype(np.int32)
    elif array.dtype == np.bool_:
        array = array.astype(np.int32)
    return array


def _tensor(words: Array, stored: Scalar, dtype: DType, shape: tuple[int, ...]) -> Tensor:
    array = words.view(NUMPY_DTYPES[stored])
    return torch.from_numpy(array.copy()).to(TORCH_DTYPES[dtype]).reshape(shape)
