"""Torch's own samples, forward and backward. A few of each operation here; the module `samples` runs them all."""

import pytest

from tests.metal_kernels.ops.samples import NAMES, OPERATIONS, check_sample, samples


def test_every_listed_operation_has_samples() -> None:
    assert set(OPERATIONS) == NAMES


@pytest.mark.parametrize("name", sorted(OPERATIONS))
@pytest.mark.filterwarnings("ignore")  # Some of torch's samples use what torch itself deprecates.
def test_an_operation_gives_what_torch_gives(name: str) -> None:
    outcomes = [check_sample(name, sample, "interpreter") for sample in samples(name, most=1)]
    assert all(outcome == "passed" or outcome.startswith("out of scope") for outcome in outcomes)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["nn.functional.conv2d", "softmax", "nn.functional.max_pool2d", "mm"])
@pytest.mark.parametrize("backend", ["wgpu", "msl"])
@pytest.mark.filterwarnings("ignore")
def test_shaders_give_what_the_interpreter_gives(name: str, backend: str) -> None:
    assert "passed" in {check_sample(name, sample, backend) for sample in samples(name, most=6)}
