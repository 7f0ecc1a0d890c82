"""The known answers that devices prove their kernels by: the same everywhere, kept, and made anew when due."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from accounts.domain.device_classes import DEVICE_CLASSES
from metal_kernels.compiler.format import compiled_loads
from metal_kernels.compiler.variants import VARIANTS
from metal_kernels.tensorfile import tensorfile_loads
from worker_protocol import self_test
from worker_protocol.self_test import SelfTest, self_test_make, self_test_open

# The reference runtime's, once and for all: another figure means that the oracle itself has changed.
LOSSES = {
    "dense": [1.67869437, 1.65988779, 1.80291009, 1.58361292],
    "convolution": [1.74053121, 1.41111636, 1.65048110, 1.29910564],
    "attention": [1.62473571, 1.65309870, 1.56154323, 1.58421719],
    "coarse": [1.58199990, 1.66988838, 1.55313981, 1.52320707],
}


@pytest.fixture(scope="module")
def made() -> SelfTest:
    return self_test_make()


@pytest.fixture
def manifest(made: SelfTest) -> dict[str, Any]:
    return dict(json.loads(made.manifest))


def test_the_known_answers_are_these(manifest: dict[str, Any]) -> None:
    assert [case["name"] for case in manifest["cases"]] == list(LOSSES)
    for case in manifest["cases"]:
        assert case["losses"] == pytest.approx(LOSSES[case["name"]], rel=1e-4)


def test_every_file_is_named_by_its_content_and_every_name_has_its_file(made: SelfTest) -> None:
    for sha256, data in made.files.items():
        assert hashlib.sha256(data).hexdigest() == sha256
        assert sha256.encode() in made.manifest


def test_every_program_has_kernels_for_every_variant(made: SelfTest, manifest: dict[str, Any]) -> None:
    for known in [*manifest["cases"], manifest["benchmark"]]:
        for variant in VARIANTS:
            compiled_loads(made.files[known["program"]["sha256"]], variant)


def test_every_tensor_of_a_model_is_compared_and_moves(made: SelfTest, manifest: dict[str, Any]) -> None:
    for case in manifest["cases"]:
        params = tensorfile_loads(made.files[case["params"]["sha256"]]).tensors
        moved = tensorfile_loads(made.files[case["moved"]["sha256"]]).tensors
        assert moved.keys() == params.keys()
        assert all(tensor.count_nonzero() for tensor in moved.values())


def test_the_benchmark_says_what_each_class_should_take(manifest: dict[str, Any]) -> None:
    assert manifest["benchmark"]["expected_step_us"].keys() == DEVICE_CLASSES.keys()
    assert manifest["benchmark"]["flops_per_step"] > 1e8


def test_it_is_kept_from_one_start_of_the_site_to_the_next(
    tmp_path: Path, made: SelfTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    makings = []

    def making() -> SelfTest:
        makings.append(1)
        return made

    monkeypatch.setattr(self_test, "self_test_make", making)
    for _ in range(2):
        monkeypatch.setattr(self_test, "_opened", {})
        assert self_test_open(tmp_path) == made
    assert len(makings) == 1
    monkeypatch.setattr(self_test, "_opened", {})
    monkeypatch.setattr(self_test, "_version", lambda: "a newer compiler's")
    self_test_open(tmp_path)
    assert len(makings) == 2
