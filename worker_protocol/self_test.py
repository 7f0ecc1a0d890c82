"""Known answers for a device's kernels, and a program to time them with.

A browser's GPU driver may compile a kernel wrongly, and only there. So before its first lease a device trains a few
small models that between them use every family of kernels, and compares with what the reference runtime made of them
here.

Capturing and compiling take some ten seconds of a processor, so the files are kept in a folder, under a key made of
the compiler's own text: another version of it makes them anew.
"""

import hashlib
import json
import tempfile
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import torch
from torch import Tensor, nn

import metal_kernels
from accounts.domain.device_classes import DEVICE_CLASSES
from metal_kernels.batches import samples_order
from metal_kernels.compiler.format import compiled_dumps
from metal_kernels.compiler.variants import compile_deltas, compile_variants
from metal_kernels.frontend.capture import capture_training_step
from metal_kernels.frontend.optimizers import AdamW, OptimizerSpec, Sgd
from metal_kernels.program.cost import program_cost
from metal_kernels.program.graph import DeltaBits, Program
from metal_kernels.runtimes.reference import ReferenceRuntime, initial_state, optimizer_zeros
from metal_kernels.tensorfile import tensorfile_dumps

MANIFEST: Final = "self-test.json"
ROWS, BATCH, STEPS, SEED, LEARNING_RATE = 24, 8, 4, 7, 0.02
BENCHMARK_FEATURES, BENCHMARK_HIDDEN, BENCHMARK_CLASSES, BENCHMARK_BATCH = 64, 512, 10, 64


@dataclass(frozen=True, slots=True)
class SelfTest:
    """`manifest` is JSON that names the files by their SHA-256."""

    manifest: bytes
    files: dict[str, bytes]


_opening: Final = threading.Lock()
_opened: Final[dict[Path, SelfTest]] = {}


def self_test_open(folder: Path) -> SelfTest:
    """The self-test of this version of the compiler, from `folder`, or made and put there; read once a process."""
    with _opening:
        if folder not in _opened:
            kept = folder / _version()
            if not (kept / MANIFEST).exists():
                _keep(self_test_make(), kept)
            _opened[folder] = _read(kept)
        return _opened[folder]


def _keep(made: SelfTest, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for sha256, data in made.files.items():
        (folder / sha256).write_bytes(data)
    with tempfile.NamedTemporaryFile(dir=folder, delete=False) as unfinished:
        unfinished.write(made.manifest)
    Path(unfinished.name).replace(folder / MANIFEST)  # last, so that what has a manifest is whole


def _read(folder: Path) -> SelfTest:
    manifest = (folder / MANIFEST).read_bytes()
    return SelfTest(manifest, {sha256: (folder / sha256).read_bytes() for sha256 in _named(manifest)})


def self_test_make() -> SelfTest:
    """Train every case with the reference runtime and compile it for each variant."""
    files: dict[str, bytes] = {}
    cases = [_case(name, case, files) for name, case in CASES.items()]
    manifest = {"cases": cases, "benchmark": _benchmark(files)}
    return SelfTest(json.dumps(manifest, separators=(",", ":")).encode(), files)


class Attention(nn.Module):
    """One head over short sequences: batched products, and softmax and layer norm along rows."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(12)
        self.heads = nn.Linear(12, 36, bias=False)
        self.out = nn.Linear(12, 5)

    def forward(self, rows: Tensor) -> Tensor:
        query, key, value = self.heads(self.norm(rows)).chunk(3, dim=-1)
        weights = torch.softmax(query @ key.transpose(1, 2) / 12**0.5, dim=-1)
        mixed = nn.functional.gelu(weights @ value)
        scores: Tensor = self.out(mixed.mean(dim=1))
        return scores


@dataclass(frozen=True, slots=True)
class Case:
    """A small model. Biases whose true gradient is zero are left out: optimizers turn their noise into steps."""

    module: Callable[[], nn.Module]
    row: tuple[int, ...]
    optimizer: OptimizerSpec
    delta_bits: DeltaBits = 8


CASES: Final[Mapping[str, Case]] = {
    "dense": Case(
        lambda: nn.Sequential(nn.Linear(20, 33), nn.ReLU(), nn.Linear(33, 5)), (20,), Sgd(momentum=0.9)
    ),
    "convolution": Case(
        lambda: nn.Sequential(
            nn.Conv2d(2, 6, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(6, 8, 3, bias=False),
            nn.BatchNorm2d(8),
            nn.Tanh(),
            nn.Flatten(),
            nn.Linear(32, 5),
        ),
        (2, 8, 8),
        Sgd(momentum=0.9, nesterov=True, weight_decay=0.01),
    ),
    "attention": Case(Attention, (6, 12), AdamW(weight_decay=0.1)),
    # Tensors large enough that what rounding loses of each is near what it loses on average.
    "coarse": Case(
        lambda: nn.Sequential(nn.Linear(20, 33, bias=False), nn.ReLU(), nn.Linear(33, 5, bias=False)),
        (20,),
        Sgd(momentum=0.9),
        delta_bits=4,
    ),
}


def _case(name: str, case: Case, files: dict[str, bytes]) -> dict[str, Any]:
    generator = torch.Generator().manual_seed(SEED)
    inputs = torch.randn(ROWS, *case.row, generator=generator)
    targets = torch.randint(5, (ROWS,), generator=generator)
    module = _seeded(case.module)
    captured = capture_training_step(
        module,
        loss="cross_entropy",
        optimizer=case.optimizer,
        example_inputs=[inputs[:BATCH]],
        example_target=targets[:BATCH],
    )
    program = replace(captured, delta_bits=case.delta_bits)
    start = initial_state(module, program)
    params = {key: start[key] for key in program.model_spec}
    trained, losses = _trained(program, params, inputs, targets)
    moved = {key: trained[key] - params[key] for key in params}
    return {
        "name": name,
        "program": _put(files, _compiled(program)),
        "params": _put(files, tensorfile_dumps(params)),
        "slice": _put(files, tensorfile_dumps({"inputs": inputs, "targets": targets})),
        "moved": _put(files, tensorfile_dumps(moved)),
        "steps": STEPS,
        "seed": SEED,
        "learning_rate": LEARNING_RATE,
        "losses": losses,
    }


def _trained(
    program: Program, params: dict[str, Tensor], inputs: Tensor, targets: Tensor
) -> tuple[dict[str, Tensor], list[float]]:
    """What the reference runtime makes of a case."""
    runtime, state, losses = ReferenceRuntime(program), {**params, **optimizer_zeros(program)}, []
    order = samples_order(rows=ROWS, batch=BATCH, steps=STEPS, seed=SEED)
    for step, rows in enumerate(order, start=1):
        state, loss = runtime.step(
            state, inputs=(inputs[rows],), target=targets[rows], lr=LEARNING_RATE, step=step, seed=SEED
        )
        losses.append(loss.item())
    return state, losses


def _benchmark(files: dict[str, bytes]) -> dict[str, Any]:
    """A program of the kind that devices get, its cost, and what each device class should take for a step."""
    module = _seeded(
        lambda: nn.Sequential(
            nn.Linear(BENCHMARK_FEATURES, BENCHMARK_HIDDEN),
            nn.ReLU(),
            nn.Linear(BENCHMARK_HIDDEN, BENCHMARK_HIDDEN),
            nn.ReLU(),
            nn.Linear(BENCHMARK_HIDDEN, BENCHMARK_CLASSES),
        )
    )
    program = capture_training_step(
        module,
        loss="cross_entropy",
        optimizer=Sgd(momentum=0.9),
        example_inputs=[torch.zeros(BENCHMARK_BATCH, BENCHMARK_FEATURES)],
        example_target=torch.zeros(BENCHMARK_BATCH, dtype=torch.int64),
    )
    cost = program_cost(program)
    return {
        "program": _put(files, _compiled(program)),
        "flops_per_step": cost.flops,
        "expected_step_us": {
            key: device_class.expected_gpu_us(
                flops=cost.flops, moved_bytes=cost.bytes, dispatches=cost.dispatches, speed_factor=1.0
            )
            for key, device_class in DEVICE_CLASSES.items()
        },
    }


def _seeded(make: Callable[[], nn.Module]) -> nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(SEED)
        return make()


def _compiled(program: Program) -> bytes:
    return compiled_dumps(program, compile_variants(program), compile_deltas(program))


def _put(files: dict[str, bytes], data: bytes) -> dict[str, Any]:
    sha256 = hashlib.sha256(data).hexdigest()
    files[sha256] = data
    return {"sha256": sha256, "size_bytes": len(data)}


def _named(manifest: bytes) -> list[str]:
    """The hashes of all files that a manifest names."""
    body = json.loads(manifest)
    parts = ("program", "params", "slice", "moved")
    named: list[str] = [case[part]["sha256"] for case in body["cases"] for part in parts]
    return [*named, body["benchmark"]["program"]["sha256"]]


def _version() -> str:
    """Changes with everything that the files are made by."""
    digest = hashlib.sha256(torch.__version__.encode())
    for source in [*sorted(Path(metal_kernels.__file__).parent.rglob("*.py")), Path(__file__)]:
        digest.update(source.read_bytes())
    return digest.hexdigest()[:16]
