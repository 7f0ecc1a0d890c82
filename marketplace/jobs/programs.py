"""The two programs of a job, captured from its model: the training step for devices, the forward step for rounds.

The training step is stored with kernels for every class of device, so that whichever device comes can run it.
"""

import logging
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache

import torch
from torch import Tensor, nn

from marketplace.errors import JobInvalid
from marketplace.jobs.quote import StepCost
from marketplace.jobs.tracing import one_trace_at_a_time
from metal_kernels.compiler.compiled import CompiledProgram
from metal_kernels.compiler.format import compiled_dumps
from metal_kernels.compiler.variants import compile_deltas, compile_variants
from metal_kernels.errors import CaptureError, CompileError, ProgramTooLarge, UncompiledOp, UnsupportedOp
from metal_kernels.frontend.capture import capture_forward, capture_training_step
from metal_kernels.frontend.losses import LossSpec
from metal_kernels.frontend.optimizers import OptimizerSpec
from metal_kernels.passes.tiles import DeviceClass
from metal_kernels.program.cost import program_cost
from metal_kernels.program.format import program_dumps, program_loads
from metal_kernels.program.graph import DeltaBits, Program
from metal_kernels.program.memory import program_memory

log = logging.getLogger(__name__)

# What the server evaluates at once: so many rows, or fewer of a model that would take more memory than this.
EVALUATION_BATCH = 256
MAX_EVALUATION_BYTES = 256 * 1024**2
# More than any phone's page may take.
MAX_MEMORY_BYTES = 2 * 1024**3

_DTYPES = {"float32": torch.float32, "int64": torch.int64}


@dataclass(frozen=True, slots=True)
class RowSpec:
    """Shape and dtype of one row of a dataset's inputs or targets."""

    shape: Sequence[int]
    dtype: str

    def batch(self, rows: int) -> Tensor:
        """Zeros, of which only shape and dtype matter."""
        return torch.zeros((rows, *self.shape), dtype=_DTYPES[self.dtype])

    @property
    def size_bytes(self) -> int:
        return math.prod(self.shape) * _DTYPES[self.dtype].itemsize


@dataclass(frozen=True, slots=True)
class JobPrograms:
    """Serialised programs, the static cost of one training step, and what a shard of it takes on a device."""

    training_step: bytes
    forward: bytes
    cost: StepCost
    memory_bytes: int
    largest_buffer_bytes: int


@dataclass(frozen=True, slots=True)
class ShardSize:
    """The largest shard of a job: rows of its data slice, local steps."""

    rows: int
    steps: int


def programs_capture(
    module: nn.Module,
    *,
    loss: LossSpec,
    optimizer: OptimizerSpec,
    inputs: RowSpec,
    targets: RowSpec,
    batch_size: int,
    delta_bits: DeltaBits,
    validation_rows: int,
    shard: ShardSize,
) -> JobPrograms:
    """Raises JobInvalid if the step cannot be captured or compiled, or needs more memory than a device has."""
    with _refusals(batch_size):
        with one_trace_at_a_time:
            captured = capture_training_step(
                module,
                loss=loss,
                optimizer=optimizer,
                example_inputs=[inputs.batch(batch_size)],
                example_target=targets.batch(batch_size),
            )
            step = replace(captured, delta_bits=delta_bits)
            forward = _forward(module, inputs, rows=min(validation_rows, EVALUATION_BATCH))
        kernels = _kernels(program_dumps(step))
    slice_bytes = shard.rows * (inputs.size_bytes + targets.size_bytes)
    # Devices run the kernels or, on a processor, the reference; each must have room.
    memory_bytes = max(
        program_memory(step).peak_bytes + slice_bytes,
        *(compiled.peak_bytes(rows=shard.rows, steps=shard.steps) for compiled in kernels.steps.values()),
    )
    if memory_bytes > MAX_MEMORY_BYTES:
        raise JobInvalid(
            f"batch_size: a step of {batch_size} rows takes {memory_bytes:,} bytes on a device, over the limit of "
            f"{MAX_MEMORY_BYTES:,}. Choose a smaller batch or model.",
            field="batch_size",
        )
    cost = program_cost(step)
    return JobPrograms(
        training_step=compiled_dumps(step, kernels.steps, kernels.deltas),
        forward=program_dumps(forward),
        cost=StepCost(flops=cost.flops, moved_bytes=cost.bytes, dispatches=cost.dispatches),
        memory_bytes=memory_bytes,
        largest_buffer_bytes=max(
            compiled.largest_buffer_bytes(rows=shard.rows, steps=shard.steps)
            for compiled in kernels.steps.values()
        ),
    )


@dataclass(frozen=True, slots=True)
class _Kernels:
    """Of a training step and of its delta, by class of device."""

    steps: dict[DeviceClass, CompiledProgram]
    deltas: dict[DeviceClass, CompiledProgram]


@lru_cache(maxsize=8)
def _kernels(training_step: bytes) -> _Kernels:
    """Compiled from a program's file. Who asks for another quote often changes nothing that kernels depend on."""
    step = program_loads(training_step)
    return _Kernels(compile_variants(step), compile_deltas(step))


@contextmanager
def _refusals(batch_size: int) -> Iterator[None]:
    """What capturing and compiling may refuse, as what the buyer must change."""
    try:
        yield
    except ProgramTooLarge as error:
        raise JobInvalid(
            f"batch_size: a step of {batch_size} rows of this model is too large for a device. Choose a smaller "
            "batch or model.",
            field="batch_size",
        ) from error
    except (UnsupportedOp, UncompiledOp) as error:
        log.exception("a model of the catalogue uses an operation that devices lack")
        raise JobInvalid(f"model: {error.message}", field="model") from error
    except (CaptureError, CompileError) as error:
        log.exception("a model of the catalogue cannot be captured or compiled")
        raise JobInvalid(
            f"model: it cannot be trained in batches of {batch_size}. Choose another batch size or other sizes.",
            field="model",
        ) from error


def _forward(module: nn.Module, inputs: RowSpec, *, rows: int) -> Program:
    """The forward step for `rows` rows, or for fewer where those would take too much of the server's memory."""
    while True:
        try:
            forward = capture_forward(module, example_inputs=[inputs.batch(rows)])
        except ProgramTooLarge:
            if rows == 1:
                raise
        else:
            if rows == 1 or program_memory(forward).peak_bytes <= MAX_EVALUATION_BYTES:
                return forward
        rows = max(1, rows // 4)
