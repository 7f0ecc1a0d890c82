"""Work goes to the GPU in submissions that are meant to take at most 100 ms, judged before anything is measured."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from metal_kernels.compiler.compile import compile_program
from metal_kernels.errors import RuntimeUnavailable
from metal_kernels.frontend.capture import capture_forward
from metal_kernels.passes.tiles import NAIVE, DeviceClass
from metal_kernels.runtimes.compiled import CompiledRuntime
from metal_kernels.runtimes.submissions import SUBMISSION_MS, SubmissionPlan
from metal_kernels.runtimes.wgpu import WgpuBackend, wgpu_device

VECTORS = json.loads((Path(__file__).parent / "vectors" / "submissions.json").read_text())


def ends(estimates_ms: list[float], times_ms: list[float], steps: int) -> list[int]:
    """The ends of submissions when dispatch p takes `times_ms[p]`."""
    plan, count = SubmissionPlan(estimates_ms), len(estimates_ms)
    found = [0]
    while found[-1] < count * steps:
        start = found[-1]
        found.append(plan.end_of(start, count * steps))
        plan.learn(start, found[-1], sum(times_ms[piece % count] for piece in range(start, found[-1])))
    return found[1:]


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["name"])
def test_submissions_end_where_the_vectors_say(vector: dict[str, Any]) -> None:
    assert ends(vector["estimates_ms"], vector["times_ms"], vector["steps"]) == vector["ends"]


durations = st.lists(st.floats(0.01, 400), min_size=1, max_size=12)


@given(times_ms=durations, steps=st.integers(1, 30))
def test_with_true_estimates_nothing_but_a_single_dispatch_is_over_the_bound(
    times_ms: list[float], steps: int
) -> None:
    start, count = 0, len(times_ms)
    for end in ends(times_ms, times_ms, steps):
        took_ms = sum(times_ms[piece % count] for piece in range(start, end))
        assert end - start == 1 or took_ms <= SUBMISSION_MS * 1.001
        start = end
    assert start == count * steps


def product_us(size: int, device: DeviceClass) -> int:
    operands = torch.zeros(size, size), torch.zeros(size, size)
    program = capture_forward(_Product(), example_inputs=operands)
    [kernel] = compile_program(program, device=device, tile=NAIVE).compiled.kernels
    return kernel.estimated_us


class _Product(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return a @ b


@pytest.mark.parametrize("device", ["cpu", "phone", "desktop"])
def test_eight_times_the_work_is_judged_to_take_about_eight_times_as_long(device: DeviceClass) -> None:
    assert 6 < product_us(1024, device) / product_us(512, device) < 9


class Clock:
    """Each look at it is a fixed time after the last."""

    def __init__(self, tick_ms: float) -> None:
        self.looks, self._tick_ms = 0, tick_ms

    def __call__(self) -> float:
        self.looks += 1
        return self.looks * self._tick_ms / 1000


def test_a_device_slower_than_its_estimate_gets_one_dispatch_at_a_time_from_then_on() -> None:
    try:
        device = wgpu_device()
    except RuntimeUnavailable as missing:
        pytest.skip(missing.message)
    module = nn.Sequential(*(nn.Linear(8, 8) for _ in range(6)))
    program = capture_forward(module, example_inputs=[torch.randn(4, 8)])
    compiled = compile_program(program, device="cpu").compiled
    clock, batch, submissions = Clock(tick_ms=400), torch.randn(4, 8), []
    runtime = CompiledRuntime(program, compiled, WgpuBackend(compiled, device, clock=clock))
    for _ in range(2):
        before = clock.looks
        predictions = runtime.predict(dict(module.named_parameters()), batch)
        torch.testing.assert_close(predictions, module(batch), rtol=1e-4, atol=1e-5)
        submissions.append((clock.looks - before) // 2)
    assert submissions == [1, len(compiled.dispatches)]
