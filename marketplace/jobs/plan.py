"""Whether a job's settings can work with a dataset, and what follows from them before anything is captured."""

from dataclasses import dataclass

from marketplace.catalogue.builder import DataShape, fits, parameter_count
from marketplace.errors import JobInvalid
from marketplace.jobs.settings import JobSettings
from marketplace.jobs.splitting import rounds_for, slice_count, slice_rows_at_most, training_rows
from marketplace.models import Dataset
from metal_kernels.frontend.losses import LossSpec

MAX_ROUNDS = 10_000

_LOSS_FOR: dict[str, LossSpec] = {"classes": "cross_entropy", "tokens": "cross_entropy", "numbers": "mse"}


@dataclass(frozen=True, slots=True)
class JobPlan:
    loss: LossSpec
    parameters: int
    train_rows: int
    validation_rows: int
    slice_rows: int  # of the largest slice
    rounds: int


def dataset_shape(dataset: Dataset) -> DataShape:
    outputs = dataset.classes if dataset.classes is not None else dataset.target_shape[0]
    return DataShape(task=dataset.task, input_shape=tuple(dataset.input_shape), outputs=outputs)


def metric_of(dataset: Dataset) -> str:
    """What a round is judged by: accuracy where rows have classes, else the loss."""
    return "accuracy" if dataset.task == Dataset.Task.CLASSES else "loss"


def job_plan(settings: JobSettings, dataset: Dataset) -> JobPlan:
    """Raises ModelDoesNotFit, ModelSpecInvalid or JobInvalid, each naming the setting to change."""
    data = dataset_shape(dataset)
    fits(settings.model, data)
    parameters = parameter_count(settings.model, input_shape=data.input_shape, outputs=data.outputs)
    train_rows = training_rows(
        rows=dataset.rows, validation_split=settings.validation_split, batch_size=settings.batch_size
    )
    if settings.target_metric is not None and settings.target_metric > 1 and metric_of(dataset) == "accuracy":
        raise JobInvalid(
            "target_metric: an accuracy is at most 1. Give 0.96 for 96 %.", field="target_metric"
        )
    shape = {
        "train_rows": train_rows,
        "batch_size": settings.batch_size,
        "local_steps": settings.local_steps,
        "shards_per_round": settings.shards_per_round,
    }
    rounds = rounds_for(epochs=settings.epochs, **shape)
    if rounds > MAX_ROUNDS:
        raise JobInvalid(
            f"epochs: {settings.epochs} come to {rounds:,} rounds, over the limit of {MAX_ROUNDS:,}. Choose fewer "
            "epochs or more local steps.",
            field="epochs",
        )
    return JobPlan(
        loss=_loss(settings, dataset),
        parameters=parameters,
        train_rows=train_rows,
        validation_rows=dataset.rows - train_rows,
        slice_rows=slice_rows_at_most(
            train_rows=train_rows, batch_size=settings.batch_size, slices=slice_count(**shape)
        ),
        rounds=rounds,
    )


def _loss(settings: JobSettings, dataset: Dataset) -> LossSpec:
    fitting = _LOSS_FOR[dataset.task]
    if settings.loss not in (None, fitting):
        raise JobInvalid(
            f"loss: {settings.loss} does not fit targets that are {dataset.task}. Use {fitting}, or leave it out.",
            field="loss",
        )
    return fitting
