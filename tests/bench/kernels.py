"""Suite `kernels`: compiled training steps on this machine's WebGPU adapter, beside eager torch on the CPU.

The models are those that the browser peers are measured with, and a GPT of two layers. Every figure of a step is the
mean of several steps that end with reading the loss.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from unittest.mock import patch

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812  # torch's own convention
from torch import Tensor, nn

from metal_kernels.compiler.compile import compile_program
from metal_kernels.compiler.compiled import (
    BYTES_PER_ELEMENT,
    CompiledBuffer,
    CompiledDispatch,
    CompiledKernel,
    CompiledProgram,
)
from metal_kernels.compiler.format import compiled_dumps
from metal_kernels.frontend.capture import capture_forward, capture_training_step
from metal_kernels.frontend.optimizers import AdamW, OptimizerSpec, Sgd
from metal_kernels.lowering.scatter import KeyedRows
from metal_kernels.passes.tiles import NAIVE, DeviceClass, Tile
from metal_kernels.program.graph import Program
from metal_kernels.runtimes.compiled import CompiledRuntime
from metal_kernels.runtimes.reference import initial_state
from metal_kernels.runtimes.wgpu import WgpuBackend, wgpu_device
from tests.bench.rows import Row, beside
from tests.metal_kernels.networks import ResNet18

DEVICE: DeviceClass = "cpu"
WARM_UP_STEPS = 2
STEPS = 8
MATMUL_SIZE = 1024
MATMUL_TURNS = 5


class PeerMlp(nn.Sequential):
    """784-256-256-10 with ReLU, as in the peers' pages."""

    def __init__(self) -> None:
        super().__init__(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))


class PeerCnn(nn.Sequential):
    """Two convolutions 3x3, each with ReLU and max-pool, and a linear layer, as in the peers' pages."""

    def __init__(self) -> None:
        super().__init__(
            nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(1568, 10),
        )  # fmt: skip


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.qkv, self.mix = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        rows, length, width = x.shape
        split = self.qkv(self.norms[0](x)).view(rows, length, 3, self.heads, width // self.heads)
        query, key, value = split.permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.mix(attended.transpose(1, 2).reshape(rows, length, width))
        changed: Tensor = x + self.mlp(self.norms[1](x))
        return changed


class SmallGpt(nn.Module):
    """Two layers of width 128, context 64."""

    def __init__(self, vocabulary: int = 65, length: int = 64, width: int = 128) -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.blocks = nn.Sequential(Block(width, 4), Block(width, 4))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

    def forward(self, indices: Tensor) -> Tensor:
        x = self.tokens(indices) + self.positions(torch.arange(indices.shape[1], device=indices.device))
        logits: Tensor = self.head(self.norm(self.blocks(x)))
        return logits


@dataclass(frozen=True)
class Subject:
    name: str
    module: Callable[[], nn.Module]
    inputs: Callable[[], Tensor]
    target: Callable[[], Tensor]
    optimizer: OptimizerSpec
    eager: Callable[[nn.Module], torch.optim.Optimizer]


def _sgd(module: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(module.parameters(), lr=0.05, momentum=0.9)


SUBJECTS = (
    Subject(
        "MLP",
        PeerMlp,
        lambda: torch.randn(64, 784),
        lambda: torch.randint(10, (64,)),
        Sgd(momentum=0.9),
        _sgd,
    ),
    Subject(
        "CNN",
        PeerCnn,
        lambda: torch.randn(64, 1, 28, 28),
        lambda: torch.randint(10, (64,)),
        Sgd(momentum=0.9),
        _sgd,
    ),
    Subject(
        "GPT",
        SmallGpt,
        lambda: torch.randint(65, (16, 64)),
        lambda: torch.randint(65, (16, 64)),
        AdamW(),
        lambda module: torch.optim.AdamW(module.parameters(), lr=0.05),
    ),
)


def run() -> list[Row]:
    device = wgpu_device()
    rows: list[Row] = []
    for subject in SUBJECTS:
        rows += _subject_rows(subject, device)
    return [*rows, _resnet_row(), *_matmul_rows(device), *_embedding_rows(device)]


def _subject_rows(subject: Subject, device: object) -> list[Row]:
    torch.manual_seed(0)
    module, inputs, target = subject.module(), subject.inputs(), subject.target()
    program = capture_training_step(
        module,
        loss="cross_entropy",
        optimizer=subject.optimizer,
        example_inputs=[inputs],
        example_target=target,
    )
    started = time.perf_counter()
    compiled = compile_program(program, device=DEVICE).compiled
    compile_s = time.perf_counter() - started
    phone = compile_program(program, device="phone").compiled
    moved, least = _bytes_moved(compiled), _least_bytes(program)
    ours_ms = _compiled_step_ms(program, compiled, module, inputs, target, device)
    return [
        beside(
            name=f"{subject.name}: dispatches a step", value=len(compiled.dispatches), unit="",
            reference="operations before fusion", reference_value=len(program.graph.nodes),
        ),
        beside(
            name=f"{subject.name}: bytes bound a step", value=moved / 2**20, unit="MiB",
            reference="least possible", reference_value=least / 2**20,
        ),
        Row(name=f"{subject.name}: compilation", value=compile_s, unit="s"),
        Row(
            name=f"{subject.name}: peak memory", value=compiled.peak_bytes(rows=len(inputs), steps=1) / 2**20,
            unit="MiB",
        ),
        Row(name=f"{subject.name}: program", value=len(compiled_dumps(program, {"phone": phone})) / 1024, unit="KB"),
        beside(
            name=f"{subject.name}: a step on wgpu", value=ours_ms, unit="ms",
            reference="torch eager, CPU", reference_value=_eager_step_ms(subject, module, inputs, target),
        ),
    ]  # fmt: skip


def _resnet_row() -> Row:
    """The largest network whose compilation has a bound; its steps are too long for this suite."""
    program = capture_training_step(
        ResNet18(),
        loss="cross_entropy",
        optimizer=Sgd(momentum=0.9),
        example_inputs=[torch.randn(32, 3, 32, 32)],
        example_target=torch.randint(10, (32,)),
    )
    started = time.perf_counter()
    compile_program(program, device=DEVICE)
    return Row(name="ResNet-18: compilation", value=time.perf_counter() - started, unit="s", target="< 10")


def _bytes_moved(compiled: CompiledProgram) -> int:
    """Every dispatch once through the buffers it binds; what caches save and what loops read again is not counted."""
    return sum(
        BYTES_PER_ELEMENT * sum(compiled.kernels[dispatch.kernel].elements)
        for dispatch in compiled.dispatches
    )


def _least_bytes(program: Program) -> int:
    """State read and written once, the batch read once."""
    state = sum(value.size_bytes for value in program.state_spec.values())
    batch = sum(entry.value.size_bytes for entry in program.inputs("input", "target"))
    return 2 * state + batch


def _compiled_step_ms(
    program: Program,
    compiled: CompiledProgram,
    module: nn.Module,
    inputs: Tensor,
    target: Tensor,
    device: object,
) -> float:
    runtime = CompiledRuntime(program, compiled, WgpuBackend(compiled, device))
    state = initial_state(module, program)

    def steps(count: int) -> float:
        order = [torch.randperm(len(inputs)) for _ in range(count)]
        started = time.perf_counter()
        runtime.train(state, inputs=[inputs], target=target, order=order, lr=lambda step: 0.05)
        return (time.perf_counter() - started) * 1000

    steps(WARM_UP_STEPS)
    return (steps(STEPS + 1) - steps(1)) / STEPS


def _eager_step_ms(subject: Subject, module: nn.Module, inputs: Tensor, target: Tensor) -> float:
    optimizer = subject.eager(module)

    def step() -> None:
        optimizer.zero_grad()
        F.cross_entropy(module(inputs).flatten(0, -2), target.flatten()).backward()
        optimizer.step()

    for _ in range(WARM_UP_STEPS):
        step()
    started = time.perf_counter()
    for _ in range(STEPS):
        step()
    return (time.perf_counter() - started) * 1000 / STEPS


class Product(nn.Module):
    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        return a @ b


def _matmul_rows(device: object) -> list[Row]:
    """Timed in turn, so that a load of the machine meets all of them."""
    backends = [
        product_backend(device, MATMUL_SIZE, tile=None),
        product_backend(device, MATMUL_SIZE, tile=NAIVE),
        hand_made_backend(device, MATMUL_SIZE),
    ]
    turns = [[backend.timed_step_s() for backend in backends] for _ in range(MATMUL_TURNS)]
    ours, naive, by_hand = (2 * MATMUL_SIZE**3 / min(times) / 1e9 for times in zip(*turns, strict=True))
    return [
        beside(
            name=f"matmul {MATMUL_SIZE}", value=ours, unit="GFLOP/s",
            reference="one result a lane", reference_value=naive, target="ratio >= 3",
        ),
        beside(
            name=f"matmul {MATMUL_SIZE}", value=ours, unit="GFLOP/s",
            reference="4x4 results a lane, by hand", reference_value=by_hand, target="ratio >= 1",
        ),
    ]  # fmt: skip


HAND_MADE = """
@group(0) @binding(0) var<storage, read> a: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> b: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> c: array<vec4<f32>>;
const WIDTH: u32 = SIZEu / 4u;
@compute @workgroup_size(8, 8)
fn product(@builtin(global_invocation_id) place: vec3<u32>) {
  let row = place.y * 4u;
  var sums = array<vec4<f32>, 4>();
  for (var k: u32 = 0u; k < WIDTH; k += 1u) {
    let b0 = b[(4u * k) * WIDTH + place.x];
    let b1 = b[(4u * k + 1u) * WIDTH + place.x];
    let b2 = b[(4u * k + 2u) * WIDTH + place.x];
    let b3 = b[(4u * k + 3u) * WIDTH + place.x];
    for (var i: u32 = 0u; i < 4u; i += 1u) {
      let left = a[(row + i) * WIDTH + k];
      sums[i] += left.x * b0 + left.y * b1 + left.z * b2 + left.w * b3;
    }
  }
  for (var i: u32 = 0u; i < 4u; i += 1u) {
    c[(row + i) * WIDTH + place.x] = sums[i];
  }
}
"""
"""What one writes by hand: a register tile of 4x4 with vector loads."""


def hand_made_backend(device: object, size: int) -> WgpuBackend:
    """A product of square matrices by the kernel above, checked."""
    kernel = CompiledKernel(
        name="product", lanes=64, groups=(size // 32, size // 32, 1), writes=[False, False, True],
        elements=[size * size] * 3, uses_uniforms=False, estimated_us=1,
        wgsl=HAND_MADE.replace("SIZE", str(size)), msl="", msl_matrices="",
    )  # fmt: skip
    buffers = [CompiledBuffer("input", name, "f32", size * size) for name in "abc"]
    compiled = CompiledProgram("forward", 1, [kernel], buffers, [CompiledDispatch(0, [0, 1, 2])], [])
    backend = WgpuBackend(compiled, device)
    left, right = (torch.randn(size, size) for _ in range(2))
    for position, operand in enumerate([left, right, torch.zeros(size, size)]):
        backend.write(position, operand.flatten().numpy())
    backend.timed_step_s()
    product = torch.from_numpy(backend.read(2, size * size).view(np.float32).copy()).view(size, size)
    torch.testing.assert_close(product, left @ right, rtol=1e-3, atol=1e-2)
    return backend


def product_backend(device: object, size: int, *, tile: Tile | None) -> WgpuBackend:
    """A product of square matrices by the table's tile, or the one given."""
    operands = [torch.randn(size, size) for _ in range(2)]
    program = capture_forward(Product(), example_inputs=operands)
    compiled = compile_program(program, device=DEVICE, tile=tile).compiled
    backend = WgpuBackend(compiled, device)
    runtime = CompiledRuntime(program, compiled, backend)
    runtime.predict({}, *operands)
    return backend


class Table(nn.Module):
    """An embedding alone, so that a step is its gradient and the update."""

    def __init__(self, keys: int, width: int) -> None:
        super().__init__()
        self.table = nn.Embedding(keys, width)

    def forward(self, rows: Tensor) -> Tensor:
        found: Tensor = self.table(rows)
        return found


def _embedding_rows(device: object) -> list[Row]:
    """Sums by sorting beside a product with a one-hot operand, at a size where sorting is chosen."""
    sorting, product = (_embedding_step_ms(device, is_sorted=is_sorted) for is_sorted in (True, False))
    return [
        beside(
            name="embedding 8000 x 128, 1024 rows: a step", value=sorting, unit="ms",
            reference="one-hot product", reference_value=product, target="ratio <= 0.5",
        )
    ]  # fmt: skip


def _embedding_step_ms(device: object, *, is_sorted: bool) -> float:
    module, rows, target = Table(8000, 128), torch.randint(8000, (16, 64)), torch.randn(16, 64, 128)
    program = capture_training_step(
        module, loss="mse", optimizer=Sgd(), example_inputs=[rows], example_target=target
    )
    with patch.object(KeyedRows, "is_worth_sorting", is_sorted):
        compiled = compile_program(program, device=DEVICE).compiled
    return _compiled_step_ms(program, compiled, module, rows, target, device)
