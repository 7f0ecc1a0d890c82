"""A shard trained by the browser's GPU moves the model as the reference runtime does."""

from base64 import b64decode
from typing import Any

import pytest
import torch

from metal_kernels.delta import LARGEST, delta_decode
from metal_kernels.tensorfile import tensorfile_loads
from tests.browser.conftest import Page
from tests.browser.shards import STEPS, Shard

pytestmark = pytest.mark.browser


def test_twenty_steps_give_the_reference_runtimes_losses_and_parameters(page: Page, any_shard: Shard) -> None:
    run = page.call("train", any_shard.name, any_shard.task)["value"]
    assert run["losses"] == pytest.approx(any_shard.losses, rel=1e-4)
    trained = tensorfile_loads(b64decode(run["trained"])).tensors
    assert trained.keys() == any_shard.trained.keys()
    for name, expected in any_shard.trained.items():
        assert trained[name].dtype == expected.dtype
        error = (trained[name].float() - expected.float()).norm()
        assert error <= 1e-4 * expected.float().norm().clamp(min=1e-3), name
    assert run["repeated"] == run["losses"]
    assert run["heard"] == sorted(run["heard"])
    assert run["heard"][-1] == STEPS
    assert run["gpuUs"] > 0


def test_the_gpu_encodes_the_delta_and_makes_up_for_rounding_in_the_next(
    page: Page, any_shard: Shard
) -> None:
    """The same shard three times: together the deltas are three times its move, to within one rounding."""
    runs = 3
    answer = page.call("trainDeltas", any_shard.name, any_shard.task, runs)["value"]
    spec = any_shard.program.model_spec
    bits = any_shard.program.delta_bits
    readers = [delta_decode(b64decode(run["delta"]), spec=spec, bits=bits) for run in answer["deltas"]]
    read_back = tensorfile_loads(b64decode(answer["readBack"])).tensors
    for name, value in spec.items():
        moved = any_shard.trained[name] - any_shard.params[name]
        read = read_back[name] - any_shard.params[name]
        if value.dtype != "float32":
            assert all(torch.equal(delta[name], read) for delta in readers)
            continue
        unit = float(read.abs().max()) / LARGEST[bits] + 1e-6
        torch.testing.assert_close(readers[0][name], read, rtol=0, atol=0.51 * unit)
        total = torch.stack([delta[name] for delta in readers]).sum(dim=0)
        torch.testing.assert_close(total, runs * moved, rtol=1e-3, atol=0.6 * unit)
    assert all(run["losses"] == pytest.approx(any_shard.losses, rel=1e-4) for run in answer["deltas"])


def test_a_run_stops_between_submissions(page: Page, mlp: Shard) -> None:
    steps = 100 * STEPS
    stopped = page.call("trainStopped", mlp.name, {**mlp.task, "steps": steps})
    assert stopped["reason"] == "AbortError"
    assert 0 < stopped["lastStep"] < steps


def test_a_lost_gpu_is_one_typed_error_and_a_new_one_does_the_work(page: Page, mlp: Shard) -> None:
    run = page.call("trainThroughLoss", mlp.name, mlp.task)
    assert run["error"]["code"] == "device_lost"
    assert run["losses"] == pytest.approx(mlp.losses, rel=1e-4)


def tensor(shape: list[int], dtype: str = "float32") -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "values": [2**40 if dtype == "int64" else 0] * shape[0]}


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"params": {"0.bias": tensor([31])}}, "0.bias"),
        ({"params": {"0.bias": tensor([32], "int32")}}, "0.bias"),
        ({"slice": {"targets": tensor([39], "int64")}}, "slice"),
        ({"slice": {"targets": tensor([40], "int64")}}, "target"),
        ({"slice": {"weights": tensor([40])}}, "slice"),
    ],
)
def test_tensors_that_do_not_fit_the_program_are_named(
    page: Page, mlp: Shard, changes: dict[str, Any], field: str
) -> None:
    error = page.call("trainWith", mlp.name, mlp.task, changes)["error"]
    assert (error["code"], error["field"]) == ("bad_feed", field)


def test_a_shard_that_needs_too_much_memory_is_refused_before_it_runs(page: Page, mlp: Shard) -> None:
    error = page.call("trainWith", mlp.name, {**mlp.task, "steps": 2**28}, {})["error"]
    assert error["code"] == "device_limit"
