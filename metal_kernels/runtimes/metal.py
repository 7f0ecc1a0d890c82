"""A backend on Metal: the MSL kernels on a Mac's GPU, through `torch.mps.compile_shader`."""

import platform
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from metal_kernels.compiler.compiled import CompiledKernel, CompiledProgram
from metal_kernels.errors import RuntimeUnavailable
from metal_kernels.runtimes.compiled import Array, StepNumbers


class MetalBackend:
    """Buffers are int32 tensors on the `mps` device; the record of a step is a tensor of words."""

    def __init__(self, compiled: CompiledProgram) -> None:
        if not torch.backends.mps.is_available():
            raise RuntimeUnavailable(
                "This machine has no Metal GPU; use the wgpu runtime or the reference runtime."
            )
        self._compiled = compiled
        self._buffers: dict[int, Tensor] = {}
        self._kernels: list[Any] = [
            getattr(torch.mps.compile_shader(_source(kernel)), kernel.name) for kernel in compiled.kernels
        ]

    def write(self, buffer: int, values: Array) -> None:
        words = torch.from_numpy(np.ascontiguousarray(values).view(np.int32).copy())
        self._buffers[buffer] = words.to("mps")

    def reserve(self, buffer: int, elements: int) -> None:
        self._buffers[buffer] = torch.zeros(elements, dtype=torch.int32, device="mps")

    def read(self, buffer: int, elements: int) -> Array:
        return self._buffers[buffer][:elements].cpu().numpy().view(np.uint32)

    def run(self, steps: Sequence[StepNumbers]) -> None:
        for numbers in steps:
            uniforms = torch.from_numpy(np.frombuffer(numbers.record(), np.int32).copy()).to("mps")
            for dispatch in self._compiled.dispatches:
                self._dispatch(dispatch.kernel, dispatch.buffers, uniforms)
            for source, target in self._compiled.copies:
                self._buffers[target].copy_(self._buffers[source][: len(self._buffers[target])])

    def _dispatch(self, position: int, buffers: Sequence[int], uniforms: Tensor) -> None:
        kernel = self._compiled.kernels[position]
        arguments = [self._buffers[buffer] for buffer in buffers]
        if kernel.uses_uniforms:
            arguments.append(uniforms)
        threads = (kernel.groups[0] * kernel.lanes, *kernel.groups[1:])
        self._kernels[position](*arguments, threads=threads, group_size=(kernel.lanes, 1, 1))


def _source(kernel: CompiledKernel) -> str:
    """Every Mac with Apple's own processor has `simdgroup_matrix`; one with another maker's GPU may not."""
    return (kernel.msl_matrices if platform.machine() == "arm64" else "") or kernel.msl
