"""A job's training step is stored with kernels for every class of device, or is refused before anything is stored."""

import hashlib

import pytest

from blobs.models import BlobHold
from blobs.selectors import blob_bytes
from marketplace.catalogue.specs import Cnn, Mlp
from marketplace.errors import JobInvalid
from marketplace.jobs import programs
from marketplace.jobs.plan import job_plan
from marketplace.models import Dataset, Job
from metal_kernels.compiler import format as compiled_format
from metal_kernels.compiler.format import compiled_loads
from metal_kernels.compiler.variants import VARIANTS
from metal_kernels.lowering.lower import RULES
from metal_kernels.program.memory import program_memory
from tests.marketplace.cast import (
    buyer,
    dataset_of_clusters,
    dataset_of_tokens,
    quoted_job,
    settings,
    small_gpt,
)

pytestmark = pytest.mark.django_db
MAX_BYTES = 10**8


def stored_step(job: Job) -> bytes:
    return blob_bytes(job.program_sha256, max_bytes=MAX_BYTES)


@pytest.mark.parametrize("model", [Mlp(hidden=(8,)), Cnn(image=(1, 2, 2), channels=(3,)), small_gpt()])
def test_every_kind_of_model_has_kernels_for_every_class_of_device(model):
    owner = buyer()
    dataset = dataset_of_tokens(owner) if model == small_gpt() else dataset_of_clusters(owner)
    job = quoted_job(owner, dataset, model=model)
    plan = job_plan(settings(model=model), dataset)
    for variant in VARIANTS:
        program, compiled = compiled_loads(
            stored_step(job), variant, expected_sha256=hashlib.sha256(stored_step(job)).hexdigest()
        )
        shard = {"rows": plan.slice_rows, "steps": job.local_steps}
        assert compiled.peak_bytes(**shard) <= job.memory_bytes
        assert 0 < compiled.largest_buffer_bytes(**shard) <= job.largest_buffer_bytes
    assert program_memory(program).peak_bytes < job.memory_bytes
    assert job.largest_buffer_bytes < job.memory_bytes


def test_the_run_is_placed_by_these_sizes():
    owner = buyer()
    small, large = (
        quoted_job(owner, Dataset.objects.first() or dataset_of_clusters(owner), model=Mlp(hidden=(width,)))
        for width in (8, 512)
    )
    assert small.largest_buffer_bytes < large.largest_buffer_bytes
    assert small.memory_bytes < large.memory_bytes


def refusal(**changes) -> JobInvalid:
    owner = buyer()
    dataset = dataset_of_clusters(owner)
    with pytest.raises(JobInvalid) as caught:
        quoted_job(owner, dataset, **changes)
    assert not Job.objects.exists()
    assert not BlobHold.objects.filter(holder__startswith="job:").exists()
    return caught.value


def test_an_operation_without_kernels_is_refused_with_its_line_and_what_to_use_instead(monkeypatch):
    monkeypatch.delitem(RULES, "aten.tanh.default")
    refused = refusal(model=Mlp(hidden=(8,), activation="tanh"))
    assert refused.field == "model"
    assert "aten.tanh.default" in refused.message
    assert "in submodule 'layers." in refused.message
    assert "modules.py:" in refused.message
    assert refused.message.endswith("pooling, reductions, indexing or where.")


def test_a_step_of_more_dispatches_than_a_device_accepts_is_refused(monkeypatch):
    programs._kernels.cache_clear()
    monkeypatch.setattr(compiled_format, "MAX_DISPATCHES", 1)
    refused = refusal()
    assert refused.field == "batch_size"
    assert "too large for a device" in refused.message


def test_another_quote_for_the_same_step_compiles_nothing(monkeypatch):
    owner = buyer()
    dataset = dataset_of_clusters(owner)
    first = quoted_job(owner, dataset)

    def never(_program):
        raise AssertionError("compiled again")

    monkeypatch.setattr(programs, "compile_variants", never)
    assert quoted_job(owner, dataset, name="again").program_sha256 == first.program_sha256
