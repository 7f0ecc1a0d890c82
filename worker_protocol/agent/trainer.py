"""The training of one lease: bytes in, an encoded delta out. Runs in a thread and stops within a step."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite

from torch import Tensor

from metal_kernels.batches import samples_order
from metal_kernels.delta import DeltaEncoder
from metal_kernels.errors import KernelError, ProgramError
from metal_kernels.program.format import program_loads
from metal_kernels.program.graph import Program
from metal_kernels.program.memory import program_memory
from metal_kernels.program.validate import program_validate
from metal_kernels.runtimes.reference import ReferenceRuntime, optimizer_zeros
from metal_kernels.tensorfile import tensorfile_loads
from worker_protocol.agent.benchmark import reference_program
from worker_protocol.agent.errors import LeaseFailed

LOSS_DIGITS = 6


@dataclass(frozen=True, slots=True)
class Task:
    """What a lease asks for, with its blobs' bytes."""

    params: bytes
    slice: bytes
    steps: int
    batch_size: int
    seed: int
    learning_rate: float


@dataclass(frozen=True, slots=True)
class Trained:
    delta: bytes
    gpu_us: int
    losses: list[float]


@dataclass(frozen=True, slots=True)
class _Loaded:
    """A program ready to run, and what rounding its deltas has lost so far."""

    program: Program
    runtime: ReferenceRuntime
    encoder: DeltaEncoder


class Stopped(Exception):
    """The training was told to stop."""


class Trainer:
    """Trains with torch on this machine's processor, at a `throttle` of its speed: 0.5 takes twice as long."""

    def __init__(self, *, throttle: float = 1.0) -> None:
        self._throttle = throttle
        self._loaded: tuple[bytes, _Loaded] | None = None

    def warm_up(self) -> None:
        """Check a program for a start: torch loads much of itself, for seconds, at the first one."""
        program_validate(reference_program())

    def memory_bytes(self, program: bytes) -> int:
        """The memory a program's steps need. Raises LeaseFailed `bad_program` when it is not valid."""
        return program_memory(self._load(program).program).peak_bytes

    def train(
        self, program: bytes, task: Task, *, stop: threading.Event, on_step: Callable[[int], None]
    ) -> Trained:
        """Run every step of the task. Raises LeaseFailed, or Stopped once `stop` is set."""
        loaded = self._load(program)
        try:
            return self._train(loaded, task, stop, on_step)
        except KernelError as error:
            raise LeaseFailed("bad_program", f"{error.code}: {error.message}") from error
        except (MemoryError, RuntimeError) as error:  # torch tells of both in RuntimeErrors
            if isinstance(error, MemoryError) or "allocate" in str(error) or "memory" in str(error):
                raise LeaseFailed("out_of_memory", str(error)) from error
            raise

    def _load(self, program: bytes) -> _Loaded:
        """Leases in a row usually share their program, so the last one is kept ready."""
        if self._loaded is None or self._loaded[0] != program:
            try:
                parsed = program_loads(program)
            except ProgramError as error:
                raise LeaseFailed("bad_program", f"{error.code}: {error.message}") from error
            self._loaded = (
                program,
                _Loaded(parsed, ReferenceRuntime(parsed), DeltaEncoder(parsed.delta_bits)),
            )
        return self._loaded[1]

    def _train(
        self, loaded: _Loaded, task: Task, stop: threading.Event, on_step: Callable[[int], None]
    ) -> Trained:
        params = tensorfile_loads(task.params).tensors
        inputs, targets = _rows(task.slice)
        state = {**params, **optimizer_zeros(loaded.program)}
        losses: list[float] = []
        busy_ns = 0
        order = samples_order(rows=len(inputs), batch=task.batch_size, steps=task.steps, seed=task.seed)
        for step, rows in enumerate(order, start=1):
            if stop.is_set():
                raise Stopped
            started_ns = time.perf_counter_ns()
            state, loss = loaded.runtime.step(
                state,
                inputs=(inputs[rows],),
                target=targets[rows],
                lr=task.learning_rate,
                step=step,
                seed=task.seed,
            )
            losses.append(_checked_loss(loss, step))
            self._dawdle(time.perf_counter_ns() - started_ns, stop)
            busy_ns += time.perf_counter_ns() - started_ns
            on_step(step)
        new = {name: state[name] for name in params}
        delta = loaded.encoder.encode(params, new)
        return Trained(delta=delta, gpu_us=max(1, busy_ns // 1000), losses=losses)

    def _dawdle(self, step_ns: int, stop: threading.Event) -> None:
        if self._throttle < 1:
            stop.wait(step_ns * (1 / self._throttle - 1) / 1e9)


def _rows(slice_file: bytes) -> tuple[Tensor, Tensor]:
    tensors = tensorfile_loads(slice_file).tensors
    if set(tensors) != {"inputs", "targets"} or len(tensors["inputs"]) != len(tensors["targets"]):
        raise LeaseFailed("data_unavailable", "the slice does not hold inputs and targets of as many rows")
    return tensors["inputs"], tensors["targets"]


def _checked_loss(loss: Tensor, step: int) -> float:
    value = loss.item()
    if not isfinite(value):
        raise LeaseFailed(
            "error", f"the loss is not finite after step {step}; the learning rate may be too high"
        )
    return float(f"{value:.{LOSS_DIGITS}g}")
