"""Random small graphs through all passes: the interpreter gives what torch gives."""

from collections.abc import Callable

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from metal_kernels.compiler.compile import compile_program
from metal_kernels.frontend.capture import capture_forward
from metal_kernels.runtimes.compiled import CompiledRuntime
from metal_kernels.runtimes.interpreter import InterpreterBackend

Operation = Callable[[Tensor, Tensor], Tensor]

OPERATIONS: dict[str, Operation] = {
    "add": lambda a, b: a + b,
    "mul": lambda a, b: a * b,
    "tanh": lambda a, b: torch.tanh(a),
    "relu": lambda a, b: torch.relu(a - b),
    "where": lambda a, b: torch.where(a > b, a, b * 0.5),
    "matmul": lambda a, b: a @ b.t() @ b * 0.1,
    "softmax": lambda a, b: torch.softmax(a, -1),
    "column softmax": lambda a, b: torch.softmax(a, 0),
    "row mean": lambda a, b: a - a.mean(-1, keepdim=True),
    "column sum": lambda a, b: a + b.sum(0, keepdim=True),
    "total": lambda a, b: a + b.mean(),
    "variance": lambda a, b: a / (b.var(-1, keepdim=True, correction=0) + 1),
    "largest": lambda a, b: a - b.amax(1, keepdim=True),
    "flip": lambda a, b: a.flip(0),
    "turn": lambda a, b: a.t().reshape(a.shape),
    "roll": lambda a, b: torch.cat([a[1:], b[:1]], 0),
    "pad": lambda a, b: nn.functional.pad(a, (1, 0))[:, :-1],
    "gather": lambda a, b: torch.take_along_dim(a, b.argmin(-1, keepdim=True), -1) + b,
    "scatter": lambda a, b: a.scatter(1, b.argmax(-1, keepdim=True), 0.5),
    "scattered sum": lambda a, b: a.scatter_add(1, b.argmax(-1, keepdim=True), b[:, :1]),
    "rows summed by index": lambda a, b: a.index_add(
        0, b.argmax(0) % len(a), b.t()[:, :1].expand(-1, a.shape[1])
    ),
    "rows replaced": lambda a, b: a.index_put((b.argmax(0)[:1],), b[:1] * 0.5),
    "angle": lambda a, b: torch.atan2(a, b.abs() + 1),
    "remainder": lambda a, b: torch.remainder(a, b.abs() + 1) * 0.25 + torch.fmod(b, 1.5),
    "running sum": lambda a, b: a.cumsum(0) * 0.2 + b.cumsum(1) * 0.1,
    "groups": lambda a, b: nn.functional.group_norm(a[None].repeat(1, 2, 1), 2)[0, : len(a)] + b,
    "enlarged": lambda a, b: (
        nn.functional.interpolate(a[None, None], scale_factor=2, mode="bilinear")[0, 0, ::2, ::2] + b
    ),
    "transposed convolution": lambda a, b: nn.functional.conv_transpose1d(
        a[None], b[:, None, :1], groups=len(a)
    )[0],
    "take": lambda a, b: a[b.argmax(0)].mean(0, keepdim=True) + b,
}


class Random(nn.Module):
    """Each step applies an operation to two values made before; the last values are summed into the result."""

    def __init__(self, steps: list[tuple[str, int, int]]) -> None:
        super().__init__()
        self.steps = steps

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        values = [x, y]
        for name, first, second in self.steps:
            values.append(OPERATIONS[name](values[first % len(values)], values[second % len(values)]))
        return values[-1] + values[-2] * 0.5


STEPS = st.lists(
    st.tuples(st.sampled_from(sorted(OPERATIONS)), st.integers(0, 9), st.integers(0, 9)),
    min_size=1,
    max_size=7,
)


@settings(max_examples=12, deadline=None)
@given(steps=STEPS, rows=st.integers(2, 7), columns=st.sampled_from([1, 3, 8, 40]))
def test_a_random_graph_gives_what_torch_gives(
    steps: list[tuple[str, int, int]], rows: int, columns: int
) -> None:
    module = Random(steps)
    generator = torch.Generator().manual_seed(0)
    inputs = [torch.randn(rows, columns, generator=generator) for _ in range(2)]
    program = capture_forward(module, example_inputs=inputs)
    compilation = compile_program(program, device="cpu")
    found = CompiledRuntime(program, compilation.compiled, InterpreterBackend(compilation)).predict(
        {}, *inputs
    )
    torch.testing.assert_close(found, module(*inputs), rtol=1e-3, atol=1e-4, equal_nan=True)
