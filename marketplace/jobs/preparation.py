"""What a run starts from, cut and stored as blobs: data slices, the validation split, the first parameters.

Each blob follows from the job alone, so preparing twice stores the same blobs once.
"""

from dataclasses import dataclass

import safetensors.torch

from blobs.selectors import blob_path
from blobs.services import blob_put
from marketplace.catalogue.builder import build
from marketplace.catalogue.specs import spec_parse
from marketplace.datasets.canonical import open_canonical, pack_rows
from marketplace.jobs.plan import dataset_shape
from marketplace.jobs.splitting import divide
from marketplace.models import Job
from scheduler.domain.spec import DataSlice


@dataclass(frozen=True, slots=True)
class RunData:
    slices: tuple[DataSlice, ...]
    validation_sha256: str
    initial_params_sha256: str


def run_data_prepare(job: Job) -> RunData:
    """Store everything under the job as holder; memory is bounded by the largest piece."""
    division = divide(
        rows=job.dataset.rows,
        validation_split=job.validation_split,
        seed=job.seed,
        batch_size=job.batch_size,
        local_steps=job.local_steps,
        shards_per_round=job.shards_per_round,
    )
    inputs, targets = open_canonical(blob_path(job.dataset.sha256))
    slices = []
    for rows in division.slices:
        data = pack_rows(inputs[rows], targets[rows])
        blob = blob_put(data=data, holder=job.reference)
        slices.append(DataSlice(sha256=blob.sha256, rows=len(rows), bytes=len(data)))
    held_out = pack_rows(inputs[division.validation], targets[division.validation])
    return RunData(
        slices=tuple(slices),
        validation_sha256=blob_put(data=held_out, holder=job.reference).sha256,
        initial_params_sha256=blob_put(data=_first_parameters(job), holder=job.reference).sha256,
    )


def _first_parameters(job: Job) -> bytes:
    shape = dataset_shape(job.dataset)
    module = build(
        spec_parse(job.model_spec), input_shape=shape.input_shape, outputs=shape.outputs, seed=job.seed
    )
    return safetensors.torch.save(module.state_dict())
