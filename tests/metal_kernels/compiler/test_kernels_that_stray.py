"""A kernel whose file lies about what it touches reaches no memory but its own buffers."""

import numpy as np

from metal_kernels.compiler.compiled import CompiledBuffer, CompiledDispatch, CompiledProgram
from metal_kernels.runtimes.compiled import StepNumbers
from metal_kernels.runtimes.wgpu import WgpuBackend
from tests.metal_kernels.backends import wgpu_device_or_skip
from tests.metal_kernels.hostile import STRAY

OWN, SECRET, COUNT = 1.0, 42.0, 64


def test_an_index_outside_reads_and_writes_nothing_of_another_buffer() -> None:
    buffers = [CompiledBuffer("input", name, "f32", COUNT) for name in ("own", "result", "secret")]
    program = CompiledProgram("forward", 1, [STRAY], buffers, [CompiledDispatch(0, [0, 1])], [])
    backend = WgpuBackend(program, wgpu_device_or_skip())
    for position, value in enumerate((OWN, 0.0, SECRET)):
        backend.write(position, np.full(COUNT, value, np.float32))
    backend.run([StepNumbers(0.0, 0.0, 0)])
    own, result, secret = (backend.read(position, COUNT).view(np.float32) for position in range(3))
    assert set(own.tolist()) == {OWN}
    assert set(secret.tolist()) == {SECRET}
    assert set(result.tolist()) <= {0.0, OWN, 7.0}
