"""Dropout: one stream of random numbers on every runtime, and nothing of it in evaluation."""

import json
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F  # noqa: N812  # torch's own convention
from torch import Tensor, nn

from metal_kernels.compiler.compile import compile_program
from metal_kernels.errors import UnsupportedOp
from metal_kernels.frontend.capture import capture_forward, capture_training_step
from metal_kernels.frontend.optimizers import Sgd
from metal_kernels.program.graph import Program
from metal_kernels.runtimes.compiled import CompiledRuntime
from metal_kernels.runtimes.reference import (
    Batch,
    ReferenceRuntime,
    TrainingRun,
    initial_state,
    optimizer_zeros,
)
from tests.metal_kernels.backends import BACKENDS

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "random.json").read_text())
ROWS = 6


class Drawn(nn.Module):
    """Keeps the numbers that it drew, in the order of its streams."""

    first: Tensor
    second: Tensor

    def __init__(self, elements: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1))
        self.register_buffer("first", torch.zeros(elements))
        self.register_buffer("second", torch.zeros(elements))

    def forward(self, x: Tensor) -> Tensor:
        self.first = torch.rand_like(self.first)
        self.second = torch.rand(self.second.shape)
        return x * self.weight


class Droppy(nn.Module):
    """Dropout of elements, of channels and inside attention."""

    def __init__(self) -> None:
        super().__init__()
        self.enter = nn.Linear(8, 16)
        self.drop = nn.Dropout(0.3)
        self.channels = nn.Dropout1d(0.5)
        self.leave = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        rows = self.channels(self.drop(torch.relu(self.enter(x))).view(-1, 4, 4))
        mixed = F.scaled_dot_product_attention(rows, rows, rows, dropout_p=0.2 if self.training else 0.0)
        left: Tensor = self.leave(mixed.mean(1))
        return left


def training_program(module: nn.Module, rows: int = ROWS) -> Program:
    return capture_training_step(
        module,
        loss="mse",
        optimizer=Sgd(),
        example_inputs=[torch.zeros(rows, 8)],
        example_target=torch.zeros(rows, 4) if isinstance(module, Droppy) else torch.zeros(rows, 8),
    )


def trained(program: Program, module: nn.Module, backend: str, *, seed: int, steps: int = 1) -> TrainingRun:
    generator = torch.Generator().manual_seed(3)
    inputs = torch.randn(ROWS, 8, generator=generator)
    target = torch.ones(ROWS, program.inputs("target")[0].value.shape[1])
    state = initial_state(module, program)
    if backend == "reference":
        batches = [Batch((inputs,), target)] * steps
        return ReferenceRuntime(program).run_steps(state, batches, lr=lambda step: 0.1, seed=seed)
    compilation = compile_program(program, device="phone")
    return CompiledRuntime(program, compilation.compiled, BACKENDS[backend](compilation)).train(
        state,
        inputs=[inputs],
        target=target,
        order=[torch.arange(ROWS)] * steps,
        lr=lambda step: 0.1,
        seed=seed,
    )


@pytest.mark.parametrize("backend", ["reference", *BACKENDS])
def test_every_runtime_draws_the_numbers_of_the_vectors(backend: str) -> None:
    cases = VECTORS["uniform"]
    elements = {case["elements"] for case in cases}.pop()
    module = Drawn(elements)
    program = training_program(module)
    for case in cases:
        run = trained(program, module, backend, seed=case["seed"], steps=case["step"])
        assert run.state["first" if case["stream"] == 0 else "second"].tolist() == case["numbers"]


@pytest.fixture(scope="module")
def droppy() -> tuple[Droppy, Program]:
    torch.manual_seed(0)
    module = Droppy()
    return module, training_program(module)


@pytest.mark.parametrize("backend", BACKENDS)
def test_dropout_trains_the_same_on_every_runtime(droppy: tuple[Droppy, Program], backend: str) -> None:
    module, program = droppy
    expected = trained(program, module, "reference", seed=2**52 + 5, steps=4)
    found = trained(program, module, backend, seed=2**52 + 5, steps=4)
    assert found.losses == pytest.approx(expected.losses, rel=1e-5)
    for name, tensor in expected.state.items():
        torch.testing.assert_close(found.state[name], tensor, rtol=1e-4, atol=1e-6)


def test_a_repeated_shard_gives_the_same_and_another_seed_does_not(droppy: tuple[Droppy, Program]) -> None:
    module, program = droppy
    first, again, other = (
        trained(program, module, "interpreter", seed=seed, steps=2).losses for seed in (9, 9, 10)
    )
    assert first == again
    assert first != other


class Gate(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4000))
        self.drop = nn.Dropout(0.25)

    def forward(self, x: Tensor) -> Tensor:
        gated: Tensor = self.drop(x * self.weight)
        return gated


def test_what_is_dropped_gets_no_gradient_and_what_is_kept_is_scaled() -> None:
    module = Gate()
    rows = torch.ones(1, 4000)
    program = capture_training_step(
        module, loss="mse", optimizer=Sgd(), example_inputs=[rows], example_target=torch.zeros(1, 4000)
    )
    state, _ = ReferenceRuntime(program).step(
        initial_state(module, program), inputs=[rows], target=torch.zeros(1, 4000), lr=1.0, step=1, seed=1
    )
    moved = 1 - state["weight"]
    kept = moved != 0
    assert 0.73 < kept.float().mean().item() < 0.77
    torch.testing.assert_close(moved[kept], torch.full_like(moved[kept], 2 / 4000 / 0.75**2))


def test_evaluation_has_no_dropout(droppy: tuple[Droppy, Program]) -> None:
    module, _ = droppy
    program = capture_forward(module, example_inputs=[torch.zeros(ROWS, 8)])
    assert not any("random" in node.op for node in program.graph.nodes)
    rows = torch.randn(ROWS, 8)
    found = ReferenceRuntime(program).predict(initial_state(module, program), rows)
    torch.testing.assert_close(found, module.eval()(rows))
    module.train()


def test_a_program_without_random_numbers_takes_no_seed(mlp_program: Program) -> None:
    assert [entry.key for entry in mlp_program.inputs("scalar")] == ["lr", "step"]
    assert not optimizer_zeros(mlp_program).keys() & {"seed_low", "seed_high"}


class AlwaysDropping(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return F.dropout(x, 0.5)


def test_random_numbers_in_evaluation_are_refused_with_the_line() -> None:
    with pytest.raises(UnsupportedOp, match=r"test_dropout\.py:\d+.*training=self\.training"):
        capture_forward(AlwaysDropping(), example_inputs=[torch.zeros(2, 8)])


class Noisy(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.inner(x + torch.randn_like(x))
        return y


def test_other_generators_are_refused_with_what_to_use_instead() -> None:
    with pytest.raises(UnsupportedOp, match=r"randn_like.*use torch\.rand"):
        training_program(Noisy())
