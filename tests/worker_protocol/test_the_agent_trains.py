"""The training of one lease: what comes out, what it costs, what it refuses, and how it stops."""

import threading
import time
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import nn

from metal_kernels.batches import samples_order
from metal_kernels.compiler.format import compiled_dumps
from metal_kernels.compiler.variants import compile_variants
from metal_kernels.delta import delta_apply, delta_decode, tensor_spec
from metal_kernels.tensorfile import tensorfile_dumps, tensorfile_loads
from tests.worker_protocol.tiny import BATCH, CLASSES, FEATURES, ROWS, tiny_job
from worker_protocol.agent.errors import LeaseFailed
from worker_protocol.agent.trainer import Stopped, Task, Trained, Trainer
from worker_protocol.wire import messages as msg
from worker_protocol.wire.codec import decode_device, encode


def train(
    task: Task,
    *,
    trainer: Trainer | None = None,
    program: bytes | None = None,
    on_step: Callable[[int], None] = lambda step: None,
) -> Trained:
    return (trainer or Trainer()).train(
        program or tiny_job().program_file, task, stop=threading.Event(), on_step=on_step
    )


def test_a_lease_moves_the_model_as_plain_torch_does():
    job, steps = tiny_job(), 30
    params = tensorfile_loads(job.params).tensors
    data = tensorfile_loads(job.slice).tensors
    module = nn.Sequential(nn.Linear(FEATURES, CLASSES))
    module.load_state_dict(params)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.9)
    losses = []
    for rows in samples_order(rows=ROWS, batch=BATCH, steps=steps, seed=11):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(module(data["inputs"][rows]), data["targets"][rows])
        torch.autograd.backward(loss)
        optimizer.step()
        losses.append(loss.item())

    seen: list[int] = []
    trained = train(job.task(steps=steps), on_step=seen.append)
    delta = delta_decode(trained.delta, spec=tensor_spec(params))
    moved = delta_apply(params, delta)
    for name, tensor in module.state_dict().items():
        bound = delta[name].abs().max() / 127  # what a byte can tell
        assert (moved[name] - tensor).abs().max() <= bound, name
    assert trained.losses == pytest.approx(losses, rel=1e-4)
    assert seen == list(range(1, steps + 1))


def test_kernels_in_the_programs_file_change_nothing_for_a_processor():
    job = tiny_job()
    compiled = compiled_dumps(job.program, compile_variants(job.program))
    assert compiled != job.program_file
    bare, with_kernels = train(job.task()), train(job.task(), program=compiled)
    assert (with_kernels.delta, with_kernels.losses) == (bare.delta, bare.losses)
    assert Trainer().memory_bytes(compiled) == Trainer().memory_bytes(job.program_file)


def test_the_same_lease_gives_the_same_bytes_on_the_same_machine():
    first, second = train(tiny_job().task()), train(tiny_job().task())
    assert (first.delta, first.losses) == (second.delta, second.losses)


def test_the_losses_of_the_longest_lease_fit_a_frame(monkeypatch):
    """Even if every one of them has as many characters as a loss can have."""
    monkeypatch.setattr("torch.Tensor.item", lambda tensor: -1.2345678901e-30)
    [loss] = train(tiny_job().task(steps=1)).losses
    result = msg.Result(
        lease_id="6d1f6a44-50a8-4a0e-8f4f-3d1f6c2b9e01",
        delta_sha256="ab" * 32,
        delta_bytes=2**53 - 1,
        gpu_us=2**53 - 1,
        steps=msg.MAX_STEPS,
        losses=[loss] * msg.MAX_STEPS,
    )
    assert decode_device(encode(result)) == result


def test_a_throttled_device_takes_and_reports_longer():
    full = train(tiny_job().task(steps=50))
    started = time.perf_counter()
    slow = train(tiny_job().task(steps=50), trainer=Trainer(throttle=0.1))
    passed_us = (time.perf_counter() - started) * 1e6
    assert slow.losses == full.losses
    assert 3 * full.gpu_us < slow.gpu_us <= passed_us


def test_a_stop_is_obeyed_within_a_step_even_of_a_slow_device():
    stop = threading.Event()
    steps: list[int] = []

    def stop_at_third(step: int) -> None:
        steps.append(step)
        if step == 3:
            stop.set()

    with pytest.raises(Stopped):
        Trainer(throttle=0.05).train(
            tiny_job().program_file, tiny_job().task(steps=4_000), stop=stop, on_step=stop_at_third
        )
    assert steps == [1, 2, 3]


def failure(task: Task, *, program: bytes | None = None) -> LeaseFailed:
    with pytest.raises(LeaseFailed) as failed:
        train(task, program=program)
    return failed.value


def test_a_program_that_is_none_is_a_bad_program():
    failed = failure(tiny_job().task(), program=b"import os")
    assert (failed.reason, failed.detail.split(":")[0]) == ("bad_program", "program_format")


def test_parameters_of_another_model_are_a_bad_program():
    other = replace(tiny_job().task(), params=tensorfile_dumps({"other": torch.zeros(1)}))
    assert failure(other).reason == "bad_program"


def test_a_slice_without_targets_is_unavailable_data():
    other = replace(tiny_job().task(), slice=tensorfile_dumps({"inputs": torch.zeros(4, FEATURES)}))
    assert failure(other).reason == "data_unavailable"


def test_a_loss_that_overflows_is_said_and_not_sent():
    failed = failure(tiny_job().task(steps=200, learning_rate=3e38))
    assert failed.reason == "error"
    assert "not finite" in failed.detail


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (MemoryError(), "out_of_memory"),
        (RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory"), "out_of_memory"),
    ],
)
def test_memory_that_runs_out_is_said(error, reason, monkeypatch):
    def fail(*args, **kwargs):
        raise error

    monkeypatch.setattr("worker_protocol.agent.trainer.DeltaEncoder.encode", fail)
    assert failure(tiny_job().task()).reason == reason
