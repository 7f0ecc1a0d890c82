"""Jobs for a browser's worker, as blobs: a tiny one, and one whose steps take their time."""

from dataclasses import dataclass
from functools import cache

import torch
from torch import nn

from metal_kernels.compiler.compile import compile_program
from metal_kernels.compiler.delta import compile_delta
from metal_kernels.compiler.format import compiled_dumps
from metal_kernels.frontend.capture import capture_training_step
from metal_kernels.frontend.optimizers import Sgd
from metal_kernels.program.graph import Program
from metal_kernels.runtimes.reference import initial_state
from metal_kernels.tensorfile import tensorfile_dumps

FEATURES, CLASSES = 16, 3


@dataclass(frozen=True)
class Job:
    program: Program
    program_file: bytes
    params: bytes
    slice: bytes
    batch: int


@cache
def tiny_job() -> Job:
    return _job(hidden=8, batch=8, rows=40)


@cache
def long_job() -> Job:
    """4,096 steps of it take a processor minutes."""
    return _job(hidden=640, batch=128, rows=256)


def compiled_for_processors(program: Program) -> bytes:
    """The program's file with kernels for a browser's GPU on a processor."""
    kernels = compile_program(program, device="cpu").compiled
    delta = compile_delta(program.model_spec, device="cpu").compiled
    return compiled_dumps(program, {"cpu": kernels}, {"cpu": delta})


def _job(*, hidden: int, batch: int, rows: int) -> Job:
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(rows, FEATURES, generator=generator)
    targets = torch.randint(CLASSES, (rows,), generator=generator)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        module = nn.Sequential(
            nn.Linear(FEATURES, hidden),
            nn.ReLU(),
            nn.Linear(hidden, hidden),
            nn.ReLU(),
            nn.Linear(hidden, CLASSES),
        )
    program = capture_training_step(
        module,
        loss="cross_entropy",
        optimizer=Sgd(momentum=0.9),
        example_inputs=(inputs[:batch],),
        example_target=targets[:batch],
    )
    state = initial_state(module, program)
    return Job(
        program=program,
        program_file=compiled_for_processors(program),
        params=tensorfile_dumps({name: state[name] for name in program.model_spec}),
        slice=tensorfile_dumps({"inputs": inputs, "targets": targets}),
        batch=batch,
    )
