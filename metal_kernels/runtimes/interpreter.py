"""A backend that interprets kernels in numpy: slow, exact about bounds, and without a driver to blame."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict

import numpy as np

from metal_kernels.compiler.compile import Compilation
from metal_kernels.ir.interpreter import kernel_interpret
from metal_kernels.ir.scalars import NUMPY_DTYPES
from metal_kernels.runtimes.compiled import Array, StepNumbers


class InterpreterBackend:
    """`matrices`: as a device whose simdgroups multiply matrices would."""

    def __init__(self, compilation: Compilation, *, matrices: bool = False) -> None:
        self._compiled = compilation.compiled
        kernels = {**compilation.kernels, **(compilation.with_matrices if matrices else {})}
        self._kernels = [kernels[kernel.name] for kernel in self._compiled.kernels]
        self._memory: dict[int, Array] = {}

    def write(self, buffer: int, values: Array) -> None:
        self._memory[buffer] = values.view(np.uint32).copy()

    def reserve(self, buffer: int, elements: int) -> None:
        self._memory[buffer] = np.zeros(elements, np.uint32)

    def read(self, buffer: int, elements: int) -> Array:
        return self._memory[buffer][:elements].copy()

    def run(self, steps: Sequence[StepNumbers]) -> None:
        for numbers in steps:
            for dispatch in self._compiled.dispatches:
                self._dispatch(dispatch.kernel, dispatch.buffers, asdict(numbers))
            for source, target in self._compiled.copies:
                self._memory[target][:] = self._memory[source][: len(self._memory[target])]

    def _dispatch(self, position: int, buffers: Sequence[int], numbers: Mapping[str, float]) -> None:
        kernel = self._kernels[position]
        arrays = {
            buffer.name: self._memory[place].view(NUMPY_DTYPES[buffer.dtype])
            for buffer, place in zip(kernel.buffers, buffers, strict=True)
        }
        kernel_interpret(kernel, arrays, numbers)
