"""The two programs of a job, captured from its model: the training step for devices, the forward step for rounds."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from marketplace.errors import JobInvalid
from marketplace.jobs.quote import StepCost
from marketplace.jobs.tracing import one_trace_at_a_time
from metal_kernels.errors import CaptureError, ProgramTooLarge
from metal_kernels.frontend.capture import capture_forward, capture_training_step
from metal_kernels.frontend.losses import LossSpec
from metal_kernels.frontend.optimizers import OptimizerSpec
from metal_kernels.program.cost import program_cost
from metal_kernels.program.format import program_dumps
from metal_kernels.program.graph import Program
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


@dataclass(frozen=True, slots=True)
class JobPrograms:
    """Serialised programs, the static cost of one training step, and the memory it takes on a device."""

    training_step: bytes
    forward: bytes
    cost: StepCost
    memory_bytes: int


def programs_capture(
    module: nn.Module,
    *,
    loss: LossSpec,
    optimizer: OptimizerSpec,
    inputs: RowSpec,
    targets: RowSpec,
    batch_size: int,
    validation_rows: int,
) -> JobPrograms:
    """Raises JobInvalid if the step cannot be captured or needs more memory than a device has."""
    try:
        with one_trace_at_a_time:
            step = capture_training_step(
                module,
                loss=loss,
                optimizer=optimizer,
                example_inputs=[inputs.batch(batch_size)],
                example_target=targets.batch(batch_size),
            )
            forward = _forward(module, inputs, rows=min(validation_rows, EVALUATION_BATCH))
    except ProgramTooLarge as error:
        raise JobInvalid(
            f"batch_size: a step of {batch_size} rows of this model is too large for a device. Choose a smaller "
            "batch or model.",
            field="batch_size",
        ) from error
    except CaptureError as error:
        log.exception("a model of the catalogue cannot be captured")
        raise JobInvalid(
            f"model: it cannot be trained in batches of {batch_size}. Choose another batch size or other sizes.",
            field="model",
        ) from error
    memory_bytes = program_memory(step).peak_bytes
    if memory_bytes > MAX_MEMORY_BYTES:
        raise JobInvalid(
            f"batch_size: a step of {batch_size} rows takes {memory_bytes:,} bytes on a device, over the limit of "
            f"{MAX_MEMORY_BYTES:,}. Choose a smaller batch or model.",
            field="batch_size",
        )
    cost = program_cost(step)
    return JobPrograms(
        training_step=program_dumps(step),
        forward=program_dumps(forward),
        cost=StepCost(flops=cost.flops, moved_bytes=cost.bytes, dispatches=cost.dispatches),
        memory_bytes=memory_bytes,
    )


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
