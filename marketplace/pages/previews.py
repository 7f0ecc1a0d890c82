"""A dataset's stored preview as its page shows it: first rows as a table, classes as bars. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from marketplace.models import Dataset

VALUES_SHOWN = 12  # of a row's inputs
CLASSES_SHOWN = 30


@dataclass(frozen=True, slots=True)
class ClassCount:
    name: str
    rows: int
    share_of_largest: float


@dataclass(frozen=True, slots=True)
class PreviewRow:
    inputs: tuple[str, ...]
    target: str


@dataclass(frozen=True, slots=True)
class Preview:
    rows: tuple[PreviewRow, ...]
    rows_cut: bool  # the rows have more values than are shown
    classes: tuple[ClassCount, ...]  # the most frequent ones
    classes_left_out: int
    input_spread: dict[str, float]
    target_spread: dict[str, float] | None


def preview_of(dataset: Dataset) -> Preview:
    stored: dict[str, Any] = dataset.preview
    labels: list[str] = stored["labels"]
    rows = zip(stored["inputs"], stored["targets"], strict=True)
    classes = _class_counts(stored["class_counts"] or [], labels)
    return Preview(
        rows=tuple(_row(dataset, inputs, targets, labels) for inputs, targets in rows),
        rows_cut=any(len(inputs) > VALUES_SHOWN for inputs in stored["inputs"]),
        classes=classes[:CLASSES_SHOWN],
        classes_left_out=len(classes[CLASSES_SHOWN:]),
        input_spread=stored["input_spread"],
        target_spread=stored["target_spread"],
    )


def _row(
    dataset: Dataset, inputs: Sequence[float], targets: Sequence[float], labels: Sequence[str]
) -> PreviewRow:
    shown = tuple(_value(value) for value in inputs[:VALUES_SHOWN])
    if dataset.task == Dataset.Task.CLASSES:
        return PreviewRow(shown, _class_name(int(targets[0]), labels))
    return PreviewRow(shown, ", ".join(_value(value) for value in targets[:VALUES_SHOWN]))


def _class_counts(counts: Sequence[int], labels: Sequence[str]) -> tuple[ClassCount, ...]:
    """By class; only where there are more than fit, the most frequent first."""
    largest = max(counts, default=0)
    classes = [
        ClassCount(_class_name(index, labels), rows, rows / largest)
        for index, rows in enumerate(counts)
        if rows
    ]
    if len(classes) > CLASSES_SHOWN:
        classes.sort(key=lambda one: -one.rows)
    return tuple(classes)


def _class_name(index: int, labels: Sequence[str]) -> str:
    return labels[index] if index < len(labels) else str(index)


def _value(value: float) -> str:
    return f"{value:.4g}"
