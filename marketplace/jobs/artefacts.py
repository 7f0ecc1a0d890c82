"""The trained model as files that torch loads without this project."""

import io

import safetensors.torch
import torch

from marketplace.catalogue.builder import build
from marketplace.catalogue.specs import spec_parse
from marketplace.jobs.plan import dataset_shape
from marketplace.jobs.programs import RowSpec
from marketplace.jobs.tracing import one_trace_at_a_time
from marketplace.models import Job

# Traced with two rows, since torch takes an example of one row for a model of one row only.
EXAMPLE_ROWS = 2


def model_pt2(job: Job, parameters: bytes) -> bytes:
    """An exported program of the model with these parameters (a safetensors file), for any number of rows.

    `torch.export.load(path).module()(x)` gives its predictions.
    """
    shape = dataset_shape(job.dataset)
    module = build(
        spec_parse(job.model_spec), input_shape=shape.input_shape, outputs=shape.outputs, seed=job.seed
    )
    module.load_state_dict(safetensors.torch.load(parameters))
    module.eval()
    example = RowSpec(job.dataset.input_shape, job.dataset.input_dtype).batch(EXAMPLE_ROWS)
    with one_trace_at_a_time:
        program = torch.export.export(module, (example,), dynamic_shapes=({0: torch.export.Dim("rows")},))
    file = io.BytesIO()
    torch.export.save(program, file)
    return file.getvalue()
