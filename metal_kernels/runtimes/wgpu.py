"""A backend on WebGPU through wgpu-py: Metal, Vulkan or DirectX 12, or Mesa's lavapipe where there is no GPU.

Pipelines and bind groups are made once for a program. The per-step numbers of all steps lie in one uniform buffer, a
record for each; a dispatch picks its record by an offset, so nothing is written between steps.
"""

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from metal_kernels.compiler.compiled import BYTES_PER_ELEMENT, CompiledKernel, CompiledProgram
from metal_kernels.errors import DeviceLost, ProgramFormatError, RuntimeUnavailable
from metal_kernels.render.wgsl import UNIFORM_GROUP
from metal_kernels.runtimes.compiled import Array, StepNumbers
from metal_kernels.runtimes.submissions import SubmissionPlan, kernels_named

try:
    import wgpu
except ImportError:  # The package is an optional extra.
    wgpu = None  # type: ignore[assignment]

_RECORD_BYTES: Final = 256
"""The distance between the records of two steps, as uniform offsets must be aligned."""


def wgpu_device() -> Any:
    """The machine's best adapter, opened. Raises `RuntimeUnavailable` where there is none."""
    if wgpu is None:
        raise RuntimeUnavailable(
            "The package wgpu is not installed; install nightshift[gpu] to run on the GPU."
        )
    try:
        adapter = wgpu.gpu.request_adapter_sync(power_preference="high-performance")
    except RuntimeError as error:
        raise RuntimeUnavailable(
            "No GPU adapter was found; install a Vulkan driver, such as Mesa's lavapipe."
        ) from error
    limits = {name: adapter.limits[name] for name in ("max-buffer-size", "max-storage-buffer-binding-size")}
    return adapter.request_device_sync(required_limits=limits)


class WgpuBackend:
    """`clock` gives seconds; submissions are planned by it."""

    def __init__(
        self,
        compiled: CompiledProgram,
        device: Any | None = None,
        *,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._clock = clock
        self._device = wgpu_device() if device is None else device
        self._compiled = compiled
        self._buffers: dict[int, Any] = {}
        self._bind_groups: dict[int, Any] | None = None
        self._uniforms: Any = None
        self._uniform_group: Any = None
        self._uniform_layout = self._make_uniform_layout()
        self._layouts = [self._make_layout(kernel) for kernel in compiled.kernels]
        self._pipelines = [
            self._make_pipeline(kernel, layout)
            for kernel, layout in zip(compiled.kernels, self._layouts, strict=True)
        ]
        self._plan = SubmissionPlan(
            compiled.kernels[dispatch.kernel].estimated_us / 1000 for dispatch in compiled.dispatches
        )
        self._running: list[str] = []  # the kernels of the submission that is not done yet

    def write(self, buffer: int, values: Array) -> None:
        self.reserve(buffer, max(values.size, 1))
        with self._typed_errors():
            self._device.queue.write_buffer(self._buffers[buffer], 0, np.ascontiguousarray(values))

    def reserve(self, buffer: int, elements: int) -> None:
        size = elements * BYTES_PER_ELEMENT
        existing = self._buffers.get(buffer)
        if existing is not None and existing.size >= size:
            return
        usage = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC | wgpu.BufferUsage.COPY_DST
        with self._typed_errors():
            self._buffers[buffer] = self._device.create_buffer(size=size, usage=usage)
        self._bind_groups = None

    def read(self, buffer: int, elements: int) -> Array:
        size = elements * BYTES_PER_ELEMENT
        with self._typed_errors():
            return np.frombuffer(self._device.queue.read_buffer(self._buffers[buffer], 0, size), np.uint32)

    def run(self, steps: Sequence[StepNumbers]) -> None:
        """In submissions that are meant to fit the time bound."""
        with self._typed_errors():
            self._run(steps)

    def _run(self, steps: Sequence[StepNumbers]) -> None:
        self._write_uniforms(steps)
        if self._bind_groups is None:
            self._bind_groups = {
                position: self._bind(dispatch.kernel, dispatch.buffers)
                for position, dispatch in enumerate(self._compiled.dispatches)
            }
        start, total = 0, len(steps) * len(self._compiled.dispatches)
        while start < total:
            end = self._plan.end_of(start, total)
            self._plan.learn(start, end, self._submit(start, end))
            start = end

    def timed_step_s(self) -> float:
        """Seconds that one step takes, from its submission to its end."""
        started = time.perf_counter()
        self.run([StepNumbers(0.0, 1.0, 0)])
        return time.perf_counter() - started

    def _submit(self, start: int, end: int) -> float:
        """Dispatches from `start` to `end`, counted through all steps. Returns the milliseconds they took."""
        count = len(self._compiled.dispatches)
        pieces = range(start, min(end, start + count))
        positions = [self._compiled.dispatches[piece % count].kernel for piece in pieces]
        self._running = [self._compiled.kernels[position].name for position in dict.fromkeys(positions)]
        began_s = self._clock()
        encoder = self._device.create_command_encoder()
        while start < end:
            stop = min((start // count + 1) * count, end)
            self._encode(encoder, start // count, range(start % count, stop - start // count * count))
            start = stop
        self._device.queue.submit([encoder.finish()])
        self._wait()
        self._running = []
        return (self._clock() - began_s) * 1000

    @contextlib.contextmanager
    def _typed_errors(self) -> Iterator[None]:
        """What wgpu raises when the device is gone or its memory is full, as `DeviceLost`.

        It tells of a submission as a whole, so all its kernels are named, and `field` is one only where there is one.
        A backend that raised it is of no more use; one on a new device is.
        """
        try:
            yield
        except (wgpu.GPUError, RuntimeError) as error:  # type: ignore[attr-defined]  # listed at run time
            reason = (str(error).strip() or type(error).__name__).splitlines()[-1].strip()
            during = (
                f"while it ran {kernels_named(self._running)}" if self._running else "between submissions"
            )
            raise DeviceLost(
                f"The GPU gave up {during}: {reason[:200]}. Open the device anew, with a smaller batch if its memory "
                "was full.",
                field=self._running[0] if len(self._running) == 1 else None,
            ) from error

    def _wait(self) -> None:
        """Until all submitted work is done. Fetching one word is the wait that every wgpu-py version has."""
        self._device.queue.read_buffer(next(iter(self._buffers.values())), 0, BYTES_PER_ELEMENT)

    def _encode(self, encoder: Any, record: int, positions: range) -> None:
        """Dispatches of one step; the copies follow the last of them."""
        groups = self._bind_groups or {}
        step = encoder.begin_compute_pass()
        for position in positions:
            dispatch = self._compiled.dispatches[position]
            kernel = self._compiled.kernels[dispatch.kernel]
            step.set_pipeline(self._pipelines[dispatch.kernel])
            step.set_bind_group(0, groups[position])
            if kernel.uses_uniforms:
                step.set_bind_group(UNIFORM_GROUP, self._uniform_group, [record * _RECORD_BYTES])
            step.dispatch_workgroups(*kernel.groups)
        step.end()
        if positions.stop < len(self._compiled.dispatches):
            return
        for source, target in self._compiled.copies:
            size = self._buffers[target].size
            encoder.copy_buffer_to_buffer(self._buffers[source], 0, self._buffers[target], 0, size)

    def _write_uniforms(self, steps: Sequence[StepNumbers]) -> None:
        size = max(len(steps), 1) * _RECORD_BYTES
        if self._uniforms is None or self._uniforms.size < size:
            usage = wgpu.BufferUsage.UNIFORM | wgpu.BufferUsage.COPY_DST
            self._uniforms = self._device.create_buffer(size=size, usage=usage)
            binding = {"buffer": self._uniforms, "offset": 0, "size": _RECORD_BYTES}
            self._uniform_group = self._device.create_bind_group(
                layout=self._uniform_layout, entries=[{"binding": 0, "resource": binding}]
            )
        records = b"".join(one.record().ljust(_RECORD_BYTES, b"\0") for one in steps)
        self._device.queue.write_buffer(self._uniforms, 0, records)

    def _bind(self, kernel: int, buffers: Sequence[int]) -> Any:
        entries = [
            {"binding": binding, "resource": {"buffer": self._buffers[buffer], "offset": 0}}
            for binding, buffer in enumerate(buffers)
        ]
        return self._device.create_bind_group(layout=self._layouts[kernel], entries=entries)

    def _make_uniform_layout(self) -> Any:
        uniform = {"type": wgpu.BufferBindingType.uniform, "has_dynamic_offset": True}
        entry = {"binding": 0, "visibility": wgpu.ShaderStage.COMPUTE, "buffer": uniform}
        return self._device.create_bind_group_layout(entries=[entry])

    def _make_layout(self, kernel: CompiledKernel) -> Any:
        kinds = {True: wgpu.BufferBindingType.storage, False: wgpu.BufferBindingType.read_only_storage}
        entries = [
            {"binding": binding, "visibility": wgpu.ShaderStage.COMPUTE, "buffer": {"type": kinds[writes]}}
            for binding, writes in enumerate(kernel.writes)
        ]
        return self._device.create_bind_group_layout(entries=entries)

    def _make_pipeline(self, kernel: CompiledKernel, layout: Any) -> Any:
        layouts = [layout, self._uniform_layout] if kernel.uses_uniforms else [layout]
        try:
            return self._device.create_compute_pipeline(
                layout=self._device.create_pipeline_layout(bind_group_layouts=layouts),
                compute={
                    "module": self._device.create_shader_module(code=kernel.wgsl),
                    "entry_point": kernel.name,
                },
            )
        except (wgpu.GPUValidationError, wgpu.GPUPipelineError) as error:  # type: ignore[attr-defined]
            reason = str(error).strip().replace("\n", " ")[:200]
            raise ProgramFormatError(
                f"The GPU's driver does not compile kernel '{kernel.name}': {reason}", field=kernel.name
            ) from error
