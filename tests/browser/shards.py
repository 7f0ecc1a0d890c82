"""A shard of each model that is trained in the browser: its files, and what the reference runtime makes of it."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import torch
from torch import Tensor, nn

from metal_kernels.batches import samples_order
from metal_kernels.compiler.compile import compile_program
from metal_kernels.compiler.delta import compile_delta
from metal_kernels.compiler.format import compiled_dumps
from metal_kernels.frontend.capture import capture_training_step
from metal_kernels.frontend.optimizers import AdamW, OptimizerSpec, Sgd
from metal_kernels.program.graph import DeltaBits, Program
from metal_kernels.runtimes.reference import ReferenceRuntime, initial_state, optimizer_zeros
from metal_kernels.tensorfile import tensorfile_dumps
from tests.metal_kernels.models import Cnn, Gpt, Mlp

STEPS: Final = 20
ROWS: Final = 40
BATCH: Final = 8
SEED: Final = 2**40 + 7
LEARNING_RATE: Final = 0.02


@dataclass(frozen=True)
class Case:
    """Biases whose true gradient is zero are left out: an optimizer turns their rounding noise into steps."""

    module: Callable[[], nn.Module]
    inputs: Callable[[], Tensor]
    target: Callable[[], Tensor]
    optimizer: OptimizerSpec
    delta_bits: DeltaBits = 8


CASES: Final = {
    "mlp": Case(Mlp, lambda: torch.randn(ROWS, 64), lambda: torch.randint(10, (ROWS,)), Sgd(momentum=0.9)),
    "mlp, 4 bits": Case(
        Mlp,
        lambda: torch.randn(ROWS, 64),
        lambda: torch.randint(10, (ROWS,)),
        Sgd(momentum=0.9),
        delta_bits=4,
    ),
    "dropout": Case(
        lambda: nn.Sequential(
            nn.Linear(64, 32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 10), nn.Dropout(0.1)
        ),
        lambda: torch.randn(ROWS, 64),
        lambda: torch.randint(10, (ROWS,)),
        Sgd(momentum=0.9),
    ),
    "cnn": Case(
        lambda: Cnn(bias=False),
        lambda: torch.randn(ROWS, 1, 8, 8),
        lambda: torch.randint(10, (ROWS,)),
        Sgd(momentum=0.9, nesterov=True, weight_decay=0.01),
    ),
    "gpt": Case(
        lambda: Gpt(bias=False),
        lambda: torch.randint(17, (ROWS, 8)),
        lambda: torch.randint(17, (ROWS, 8)),
        AdamW(weight_decay=0.1),
    ),
}


@dataclass(frozen=True)
class Shard:
    """`trained` and `losses` are the reference runtime's."""

    name: str
    program: Program
    params: dict[str, Tensor]
    trained: dict[str, Tensor]
    losses: list[float]

    @property
    def task(self) -> dict[str, Any]:
        return {"steps": STEPS, "seed": SEED, "learningRate": LEARNING_RATE}


def shard(name: str, folder: Path) -> Shard:
    """Capture, compile and train a case, and leave its files in `folder`."""
    torch.manual_seed(0)
    case = CASES[name]
    module, inputs, target = case.module(), case.inputs(), case.target()
    captured = capture_training_step(
        module,
        loss="cross_entropy",
        optimizer=case.optimizer,
        example_inputs=[inputs[:BATCH]],
        example_target=target[:BATCH],
    )
    program = replace(captured, delta_bits=case.delta_bits)
    zeros = optimizer_zeros(program)
    params = {
        key: tensor.clone() for key, tensor in initial_state(module, program).items() if key not in zeros
    }
    compiled = compile_program(program, device="cpu").compiled
    delta = compile_delta(program.model_spec, device="cpu", bits=program.delta_bits).compiled
    (folder / f"{name}.program").write_bytes(compiled_dumps(program, {"cpu": compiled}, {"cpu": delta}))
    (folder / f"{name}.params").write_bytes(tensorfile_dumps(params))
    (folder / f"{name}.slice").write_bytes(tensorfile_dumps({"inputs": inputs, "targets": target}))
    runtime, state, losses = ReferenceRuntime(program), {**params, **zeros}, []
    order = samples_order(rows=ROWS, batch=BATCH, steps=STEPS, seed=SEED)
    for step, rows in enumerate(order, start=1):
        state, loss = runtime.step(
            state, inputs=(inputs[rows],), target=target[rows], lr=LEARNING_RATE, step=step, seed=SEED
        )
        losses.append(loss.item())
    return Shard(name, program, params, {key: state[key] for key in params}, losses)
