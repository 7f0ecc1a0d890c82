"""Jobs are posted while the models of others are packed; in torch only one trace may be under way."""

import io

import pytest
import safetensors.torch
import torch

from marketplace.catalogue.builder import build
from marketplace.catalogue.specs import Mlp
from marketplace.jobs.artefacts import model_pt2
from marketplace.jobs.programs import RowSpec, ShardSize, programs_capture
from marketplace.models import Dataset, Job
from metal_kernels.frontend.optimizers import Sgd
from tests.at_once import at_once

MODEL = Mlp(hidden=(16,))
ROUNDS = 5


@pytest.fixture
def job() -> Job:
    dataset = Dataset(
        task="classes",
        input_shape=[4],
        input_dtype="float32",
        target_shape=[],
        target_dtype="int64",
        classes=2,
        rows=120,
    )
    return Job(dataset=dataset, model_spec={"kind": "mlp", "hidden": [16]}, seed=1)


def test_models_can_be_captured_and_packed_at_once(job):
    module = build(MODEL, input_shape=(4,), outputs=2, seed=1)
    parameters = safetensors.torch.save(module.state_dict())
    packed: list[bytes] = []

    def capture() -> None:
        for _ in range(ROUNDS):
            programs_capture(
                build(MODEL, input_shape=(4,), outputs=2, seed=1),
                loss="cross_entropy",
                optimizer=Sgd(),
                inputs=RowSpec((4,), "float32"),
                targets=RowSpec((), "int64"),
                batch_size=8,
                delta_bits=8,
                validation_rows=12,
                shard=ShardSize(rows=48, steps=4),
            )

    def pack() -> None:
        packed.extend(model_pt2(job, parameters) for _ in range(ROUNDS))

    assert at_once(capture, capture, pack, pack) == []
    example = torch.zeros(3, 4)
    for data in packed:
        model = torch.export.load(io.BytesIO(data)).module()
        torch.testing.assert_close(model(example), module(example))
