"""A tiny job for the agent: one dense layer on random rows, as blobs."""

from dataclasses import dataclass
from functools import cache

import torch
from torch import nn

from metal_kernels.frontend.capture import capture_training_step
from metal_kernels.frontend.optimizers import Sgd
from metal_kernels.program.format import program_dumps
from metal_kernels.program.graph import Program
from metal_kernels.runtimes.reference import initial_state
from metal_kernels.tensorfile import tensorfile_dumps
from worker_protocol.agent.trainer import Task

torch.set_num_threads(1)  # as an agent does; more only get in each other's way here
ROWS, BATCH, FEATURES, CLASSES = 40, 8, 6, 3


@dataclass(frozen=True)
class TinyJob:
    program: Program
    program_file: bytes
    params: bytes
    slice: bytes

    def task(self, *, steps: int = 5, learning_rate: float = 0.1) -> Task:
        return Task(self.params, self.slice, steps, BATCH, seed=11, learning_rate=learning_rate)


@cache
def tiny_job() -> TinyJob:
    generator = torch.Generator().manual_seed(0)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        module = nn.Sequential(nn.Linear(FEATURES, CLASSES))
    inputs = torch.randn(ROWS, FEATURES, generator=generator)
    targets = torch.randint(CLASSES, (ROWS,), generator=generator)
    program = capture_training_step(
        module,
        loss="cross_entropy",
        optimizer=Sgd(momentum=0.9),
        example_inputs=(inputs[:BATCH],),
        example_target=targets[:BATCH],
    )
    state = initial_state(module, program)
    params = {name: state[name] for name in program.model_spec}
    return TinyJob(
        program=program,
        program_file=program_dumps(program),
        params=tensorfile_dumps(params),
        slice=tensorfile_dumps({"inputs": inputs, "targets": targets}),
    )
