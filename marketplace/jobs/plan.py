"""Whether a job's settings can work with a dataset, and what follows from them before anything is captured."""

from dataclasses import dataclass

from marketplace.catalogue.builder import DataShape, fits, parameter_count
from marketplace.errors import JobInvalid
from marketplace.jobs.settings import JobSettings
from marketplace.jobs.splitting import rounds_for, slice_count, slice_rows_at_most, training_rows
from marketplace.models import Dataset
from metal_kernels.frontend.losses import CrossEntropy, Huber, Loss, Mse

MAX_ROUNDS = 10_000

_LOSSES_FOR: dict[str, dict[str, type[Loss]]] = {
    "classes": {"cross_entropy": CrossEntropy},
    "tokens": {"cross_entropy": CrossEntropy},
    "numbers": {"mse": Mse, "huber": Huber},
}  # the first is the usual one


@dataclass(frozen=True, slots=True)
class JobPlan:
    loss: Loss
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


def _loss(settings: JobSettings, dataset: Dataset) -> Loss:
    fitting = _LOSSES_FOR[dataset.task]
    usual, *_ = fitting
    name = settings.loss or usual
    if name not in fitting:
        raise JobInvalid(
            f"loss: {name} does not fit targets that are {dataset.task}. Use {' or '.join(fitting)}, or leave it "
            "out.",
            field="loss",
        )
    if not settings.label_smoothing:
        return fitting[name]()
    if name != "cross_entropy":
        raise JobInvalid(
            f"label_smoothing: {name} has none. Set it to 0; only cross_entropy smooths labels.",
            field="label_smoothing",
        )
    return CrossEntropy(label_smoothing=settings.label_smoothing)
