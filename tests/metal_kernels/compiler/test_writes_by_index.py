"""What is written or summed where indices say: embeddings, index_put and scatters, without atomics."""

from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from metal_kernels.compiler.compile import compile_program
from metal_kernels.frontend.capture import capture_training_step
from metal_kernels.frontend.optimizers import Sgd
from metal_kernels.lowering.scatter import KeyedRows
from metal_kernels.runtimes.compiled import CompiledRuntime
from metal_kernels.runtimes.reference import initial_state
from tests.metal_kernels.backends import BACKENDS, DEVICES


def assert_gradients_are_torchs(module: nn.Module, rows: Tensor, backend: str = "interpreter") -> int:
    """One step of descent moves every parameter as torch's gradient says. Returns the number of dispatches."""
    expected = module(rows)
    target = torch.randn(expected.shape)
    program = capture_training_step(
        module, loss="mse", optimizer=Sgd(), example_inputs=[rows], example_target=target
    )
    state = initial_state(module, program)
    compilation = compile_program(program, device=DEVICES[backend])
    run = CompiledRuntime(program, compilation.compiled, BACKENDS[backend](compilation)).train(
        state, inputs=[rows], target=target, order=[torch.arange(len(rows))], lr=lambda step: 1.0
    )
    nn.functional.mse_loss(expected, target).backward()
    for name, parameter in module.named_parameters():
        assert parameter.grad is not None
        torch.testing.assert_close(state[name] - run.state[name], parameter.grad, rtol=1e-4, atol=1e-5)
    return len(compilation.compiled.dispatches)


class Table(nn.Module):
    def __init__(self, keys: int, width: int, padding: int | None = None) -> None:
        super().__init__()
        self.table = nn.Embedding(keys, width, padding_idx=padding)

    def forward(self, rows: Tensor) -> Tensor:
        found: Tensor = self.table(rows)
        return found


@settings(deadline=None, max_examples=25)
@given(
    keys=st.integers(1, 40),
    rows=st.integers(1, 70),
    width=st.integers(1, 5),
    padded=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_sorted_sums_are_those_of_an_embedding(
    keys: int, rows: int, width: int, padded: bool, seed: int
) -> None:
    torch.manual_seed(seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(KeyedRows, "is_worth_sorting", True)
        module = Table(keys, width, padding=keys // 2 if padded else None)
        assert_gradients_are_torchs(module, torch.randint(keys, (rows, 1)))


@pytest.mark.parametrize("backend", ["wgpu", "msl"])
def test_shaders_sort_as_the_interpreter_does(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(KeyedRows, "is_worth_sorting", True)
    assert_gradients_are_torchs(Table(50, 6), torch.randint(50, (12, 7)), backend)


def test_only_large_tables_are_worth_sorting_for() -> None:
    def given_rows(keys: int, rows: int) -> KeyedRows:
        return KeyedRows(rows, 64, keys, key=lambda row: row, value=lambda row, column: column)

    assert not given_rows(65, 1024).is_worth_sorting
    assert given_rows(50_000, 1024).is_worth_sorting


class Writes(nn.Module):
    def __init__(self, write: Callable[[Tensor, Tensor], Tensor]) -> None:
        super().__init__()
        self.write = write
        self.linear = nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        return self.write(self.linear(x), x)


PLACES = torch.tensor([3, 1, 1])

WRITES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "gather": lambda y, x: torch.gather(y, 2, x.argmax(-1, keepdim=True).expand(-1, -1, 2)),
    "index_select": lambda y, x: y.index_select(1, PLACES),
    "rows by index": lambda y, x: y[:, PLACES],
    "elements by index": lambda y, x: y[torch.tensor([0, 1, 1]), torch.tensor([2, 3, 3])],
    "indices apart": lambda y, x: y[torch.tensor([0, 1, 1]), :, torch.tensor([2, 3, 3])],
    "last dimension": lambda y, x: y[..., PLACES],
    "scatter": lambda y, x: torch.zeros(3, 6, 8).scatter(2, x.argmax(-1, keepdim=True), y[..., :1]),
    "scatter of a number": lambda y, x: y.scatter(2, x.argmax(-1, keepdim=True), 2.0),
    "scatter_add": lambda y, x: torch.ones(3, 4, 8).scatter_add(
        1, (torch.arange(6) % 4)[None, :, None].expand(3, 6, 8), y
    ),
    "index_add": lambda y, x: torch.zeros(3, 4, 8).index_add(1, torch.arange(6) % 4, y),
    "index_put": lambda y, x: torch.ones(4, 3, 8).index_put((torch.tensor([0, 2, 1]),), y[:, :3]),
    "index_put that adds": lambda y, x: torch.ones(4, 3, 8).index_put(
        (torch.tensor([0, 2, 2]),), y[:, :3], accumulate=True
    ),
    "largest of each": lambda y, x: y.max(1).values,
}


@pytest.mark.parametrize("name", WRITES)
def test_writing_by_index_and_its_gradient_are_torchs(name: str) -> None:
    assert_gradients_are_torchs(Writes(WRITES[name]), torch.randn(3, 6, 8))
