"""Every backend that this machine has, by name: one suite runs over all of them."""

import shutil
import tempfile
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest

from metal_kernels.compiler.compile import Compilation
from metal_kernels.errors import RuntimeUnavailable
from metal_kernels.passes.tiles import DeviceClass
from metal_kernels.runtimes.compiled import Backend
from metal_kernels.runtimes.interpreter import InterpreterBackend
from metal_kernels.runtimes.wgpu import WgpuBackend, wgpu_device
from tests.metal_kernels.msl.standin import MslOnCpu


def interpreter(compilation: Compilation) -> Backend:
    return InterpreterBackend(compilation)


def wgpu(compilation: Compilation) -> Backend:
    return WgpuBackend(compilation.compiled, wgpu_device_or_skip())


def msl(compilation: Compilation, *, matrices: bool = False) -> Backend:
    if shutil.which("g++") is None:
        pytest.skip("the MSL stand-in needs g++")
    return MslOnCpu(compilation.compiled, _msl_folder(), matrices=matrices)


BACKENDS: dict[str, Callable[[Compilation], Backend]] = {"interpreter": interpreter, "wgpu": wgpu, "msl": msl}

DEVICES: dict[str, DeviceClass] = {"interpreter": "cpu", "wgpu": "cpu", "msl": "phone"}
"""The class of device that each is."""

WITH_MATRICES: dict[str, Callable[[Compilation], Backend]] = {
    "interpreter": partial(InterpreterBackend, matrices=True),
    "msl": partial(msl, matrices=True),
}
"""The same, as devices whose simdgroups multiply matrices."""


@cache
def wgpu_device_or_skip() -> Any:
    try:
        return wgpu_device()
    except RuntimeUnavailable as missing:
        pytest.skip(missing.message)


@cache
def _msl_folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="nightshift-msl-"))
