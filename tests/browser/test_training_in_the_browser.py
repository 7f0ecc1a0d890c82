"""A shard trained by the browser's GPU moves the model as the reference runtime does."""

from base64 import b64decode
from typing import Any

import pytest
import torch

from metal_kernels.delta import delta_decode
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


def test_the_delta_of_a_shard_is_one_that_the_server_takes(page: Page, mlp: Shard) -> None:
    run = page.call("train", mlp.name, mlp.task)["value"]
    delta = delta_decode(b64decode(run["delta"]), spec=mlp.program.model_spec)
    for name, moved in delta.items():
        expected = mlp.trained[name] - mlp.params[name]
        torch.testing.assert_close(moved, expected, rtol=0, atol=float(expected.abs().max()) / 200)


def test_a_run_stops_between_submissions(page: Page, mlp: Shard) -> None:
    stopped = page.call("trainStopped", mlp.name, mlp.task)
    assert stopped["reason"] == "AbortError"
    assert 0 < stopped["lastStep"] < STEPS


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


class TestSubmissions:
    """Each is meant to take at most 100 ms."""

    def test_a_dispatch_that_was_never_measured_goes_alone(self, page: Page) -> None:
        assert page.call("submissions", [10, 20, 30], 1) == [1, 2, 3]

    def test_a_long_step_is_cut_between_its_dispatches(self, page: Page) -> None:
        assert page.call("submissions", [60, 60, 30], 2) == [1, 2, 3, 4, 6]

    def test_short_steps_go_together(self, page: Page) -> None:
        assert page.call("submissions", [5, 5], 30) == [1, 2, 22, 42, 60]

    def test_a_dispatch_longer_than_the_bound_goes_alone(self, page: Page) -> None:
        assert page.call("submissions", [500, 10], 2) == [1, 2, 3, 4]
