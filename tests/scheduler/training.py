"""A real, small training: handwritten digits, an MLP, and devices that train with the reference runtime."""

from dataclasses import dataclass, replace
from functools import lru_cache
from uuid import UUID, uuid4

import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn

from blobs.selectors import blob_bytes
from blobs.services import blob_put
from metal_kernels.batches import samples_order
from metal_kernels.delta import delta_encode
from metal_kernels.frontend.capture import capture_forward, capture_training_step
from metal_kernels.frontend.optimizers import AdamW
from metal_kernels.program.format import program_dumps
from metal_kernels.program.graph import Program
from metal_kernels.runtimes.reference import Batch, ReferenceRuntime, initial_state, optimizer_zeros
from metal_kernels.tensorfile import tensorfile_dumps, tensorfile_loads
from scheduler.domain import events as ev
from scheduler.domain.spec import DataSlice, RunSpec
from scheduler.selectors import LeaseWork

from .world import spec

BATCH, VALIDATION_BATCH, LEARNING_RATE = 32, 64, 3e-3


@dataclass(frozen=True)
class Digits:
    """The rows are shuffled once: the last 360 are for validation."""

    inputs: Tensor
    targets: Tensor
    test_inputs: Tensor
    test_targets: Tensor


@dataclass(frozen=True)
class Trainee:
    training: Program
    forward: Program
    state: dict[str, Tensor]  # parameters and buffers at the start


@lru_cache
def digits() -> Digits:
    data = load_digits()
    order = torch.randperm(len(data.data), generator=torch.Generator().manual_seed(0))
    inputs = torch.tensor(data.data, dtype=torch.float32)[order] / 16
    targets = torch.tensor(data.target, dtype=torch.int64)[order]
    return Digits(inputs[:-360], targets[:-360], inputs[-360:], targets[-360:])


@lru_cache
def trainee() -> Trainee:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        module = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    some = digits()
    training = capture_training_step(
        module,
        loss="cross_entropy",
        optimizer=AdamW(),
        example_inputs=[some.inputs[:BATCH]],
        example_target=some.targets[:BATCH],
    )
    forward = capture_forward(module, example_inputs=[some.inputs[:VALIDATION_BATCH]])
    start = initial_state(module, training)
    return Trainee(training, forward, {name: start[name] for name in training.model_spec})


def local_steps(
    base: dict[str, Tensor], inputs: Tensor, targets: Tensor, *, steps: int, seed: int, batch: int = BATCH
) -> tuple[dict[str, Tensor], list[float]]:
    """What a device does with a lease: (new parameters, losses)."""
    program = trainee().training
    batches = (
        Batch((inputs[rows],), targets[rows])
        for rows in samples_order(rows=len(inputs), batch=batch, steps=steps, seed=seed)
    )
    done = ReferenceRuntime(program).run_steps(
        {**base, **optimizer_zeros(program)}, batches, lr=lambda _: LEARNING_RATE
    )
    return {name: done.state[name] for name in base}, done.losses


def digits_run(*, shards: int = 3, steps: int = 20, rounds: int = 2, holder: str = "job:digits") -> RunSpec:
    """A run on digits whose blobs are stored."""

    def put(tensors: dict[str, Tensor]) -> str:
        return blob_put(data=tensorfile_dumps(tensors), holder=holder).sha256

    data = digits()
    slices = []
    for part in torch.arange(len(data.inputs)).tensor_split(shards):
        content = tensorfile_dumps({"inputs": data.inputs[part], "targets": data.targets[part]})
        slices.append(DataSlice(blob_put(data=content, holder=holder).sha256, len(part), len(content)))
    return replace(
        spec(),
        id=uuid4(),
        program_sha256=blob_put(data=program_dumps(trainee().training), holder=holder).sha256,
        forward_sha256=blob_put(data=program_dumps(trainee().forward), holder=holder).sha256,
        validation_sha256=put({"inputs": data.test_inputs, "targets": data.test_targets}),
        initial_params_sha256=put(trainee().state),
        slices=tuple(slices),
        local_steps=steps,
        batch_size=BATCH,
        learning_rate=LEARNING_RATE,
        shards_per_round=shards,
        rounds_planned=rounds,
        step_flops=2e6,
    )


def train(work: LeaseWork) -> ev.ResultReported:
    """An honest device's answer to a lease; its delta is stored as uploaded."""
    base = _tensors(work.params_sha256)
    rows = _tensors(work.slice_sha256)
    new, losses = local_steps(base, rows["inputs"], rows["targets"], steps=work.steps, seed=work.seed)
    return reported(work, delta_encode(base, new), losses)


def reported(
    work: LeaseWork, delta: bytes, losses: list[float], *, device_id: UUID | None = None
) -> ev.ResultReported:
    blob = blob_put(data=delta, holder=f"lease:{work.lease_id}")
    return ev.ResultReported(
        device_id=device_id or work.device_id,
        lease_id=work.lease_id,
        delta_sha256=blob.sha256,
        delta_bytes=len(delta),
        gpu_us=1_000,
        steps=len(losses),
        losses=tuple(losses),
    )


def _tensors(sha256: str) -> dict[str, Tensor]:
    return tensorfile_loads(blob_bytes(sha256, max_bytes=2**30)).tensors
