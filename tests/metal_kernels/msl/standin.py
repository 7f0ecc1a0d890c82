"""A backend that compiles a program's MSL as C++ and runs it on the CPU."""

import ctypes
import hashlib
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from metal_kernels.compiler.compiled import CompiledKernel, CompiledProgram
from metal_kernels.runtimes.compiled import Array, StepNumbers

METAL_STDLIB = Path(__file__).parent / "include" / "metal_stdlib"
FLAGS = ("-std=c++20", "-O1", "-fPIC", "-ffp-contract=off", "-Wno-attributes")


class MslOnCpu:
    """The library is built once for a program text and kept in `folder`. `matrices`: as a device with
    `simdgroup_matrix` would."""

    def __init__(self, compiled: CompiledProgram, folder: Path, *, matrices: bool = False) -> None:
        self._compiled = compiled
        self._memory: dict[int, Array] = {}
        library = ctypes.CDLL(str(_library(compiled.kernels, folder, matrices)))
        self._kernels = [getattr(library, f"run_{kernel.name}") for kernel in compiled.kernels]

    def write(self, buffer: int, values: Array) -> None:
        self._memory[buffer] = values.view(np.uint32).copy()

    def reserve(self, buffer: int, elements: int) -> None:
        self._memory[buffer] = np.zeros(elements, np.uint32)

    def read(self, buffer: int, elements: int) -> Array:
        return self._memory[buffer][:elements].copy()

    def run(self, steps: Sequence[StepNumbers]) -> None:
        for numbers in steps:
            for dispatch in self._compiled.dispatches:
                kernel = self._compiled.kernels[dispatch.kernel]
                addresses = [self._memory[buffer].ctypes.data for buffer in dispatch.buffers]
                self._kernels[dispatch.kernel](
                    (ctypes.c_void_p * len(addresses))(*addresses),
                    ctypes.c_char_p(numbers.record()),
                    (ctypes.c_uint32 * 3)(*kernel.groups),
                    ctypes.c_uint32(kernel.lanes),
                )
            for source, target in self._compiled.copies:
                self._memory[target][:] = self._memory[source][: len(self._memory[target])]


def _library(kernels: Sequence[CompiledKernel], folder: Path, matrices: bool) -> Path:
    source = "#include <metal_stdlib>\n" + "\n".join(
        _with_driver(kernel, (kernel.msl_matrices if matrices else "") or kernel.msl) for kernel in kernels
    )
    built = folder / f"{hashlib.sha256(source.encode()).hexdigest()[:16]}.so"
    if not built.exists():
        text = built.with_suffix(".cpp")
        text.write_text(source)
        _compile_library(folder)
        subprocess.run(["g++", *FLAGS, "-shared", f"-I{folder}", str(text), "-o", str(built)], check=True)
    return built


def _compile_library(folder: Path) -> None:
    """Metal's stand-in library, once a folder: it takes longer than the kernels of most programs."""
    header = folder / "metal_stdlib"
    if not header.exists():
        shutil.copy(METAL_STDLIB, header)
        subprocess.run(["g++", *FLAGS, "-x", "c++-header", str(header)], check=True)


def _with_driver(kernel: CompiledKernel, msl: str) -> str:
    """The kernel in a namespace of its own, and a C function that dispatches it."""
    signature = re.search(rf"kernel void {kernel.name}\((.*)\) {{", msl)
    assert signature is not None
    arguments = []
    for position, parameter in enumerate(signature.group(1).split(", ")):
        if pointer := re.match(r"device (const )?(\w+)\*", parameter):
            namespace = "metal::" if pointer.group(2).endswith("4") else ""
            arguments.append(f"({namespace}{pointer.group(2)}*)buffers[{position}]")
    if kernel.uses_uniforms:
        arguments.append(f"*(const in_{kernel.name}::Uniforms*)uniforms")
    arguments += ["group", "index"]
    if "simdgroup_index_in_threadgroup" in msl:
        arguments.append("index / standin::kSimdgroupLanes")
    has_barrier = "true" if "threadgroup_barrier" in msl else "false"
    return f"""
namespace in_{kernel.name} {{
{msl}
}}
extern "C" void run_{kernel.name}(void** buffers, const char* uniforms, const uint* groups, uint lanes) {{
  standin::dispatch(groups, lanes, {has_barrier}, [&](metal::uint3 group, uint index) {{
    in_{kernel.name}::{kernel.name}({", ".join(arguments)});
  }});
}}
"""
