"""What is seen of a dataset while it streams by: first rows, spread of values, how often each class is."""

from typing import Any

import numpy as np

from marketplace.datasets.arrays import Array

PREVIEW_ROWS = 5
PREVIEW_VALUES = 16  # of a row
PREVIEW_CLASSES = 100


class Statistics:
    """Fed with converted chunks in row order; `preview` is JSON for the dataset's page."""

    def __init__(self, *, task: str) -> None:
        self.task = task
        self.highest_index = -1
        self._first_inputs: list[Any] = []
        self._first_targets: list[Any] = []
        self._inputs = _Spread()
        self._targets = _Spread()
        self._counts = np.zeros(0, dtype=np.int64)

    def add_inputs(self, chunk: Array) -> None:
        _keep_first(self._first_inputs, chunk)
        self._inputs.add(chunk)
        if self.task == "tokens":
            self.highest_index = max(self.highest_index, int(chunk.max()))

    def add_targets(self, chunk: Array) -> None:
        _keep_first(self._first_targets, chunk)
        self._targets.add(chunk)
        if self.task == "numbers":
            return
        self.highest_index = max(self.highest_index, int(chunk.max()))
        counts = np.bincount(chunk.reshape(-1))
        longer = max(len(counts), len(self._counts))
        self._counts = np.pad(self._counts, (0, longer - len(self._counts))) + np.pad(
            counts, (0, longer - len(counts))
        )

    @property
    def classes(self) -> int | None:
        """How many classes (or different tokens) a model must know; None where numbers are predicted."""
        return None if self.task == "numbers" else self.highest_index + 1

    @property
    def single_class(self) -> bool:
        return self.task == "classes" and int(np.count_nonzero(self._counts)) < 2

    def preview(self, labels: tuple[str, ...]) -> dict[str, Any]:
        """`class_counts` is null where numbers are predicted or the classes are too many to list."""
        listed = self.task == "classes" and len(self._counts) <= PREVIEW_CLASSES
        return {
            "inputs": self._first_inputs,
            "targets": self._first_targets,
            "input_spread": self._inputs.as_json(),
            "target_spread": self._targets.as_json() if self.task == "numbers" else None,
            "class_counts": self._counts.tolist() if listed else None,
            "labels": list(labels[:PREVIEW_CLASSES]),
        }


class _Spread:
    """Least, greatest and mean value over chunks."""

    def __init__(self) -> None:
        self.least = np.inf
        self.greatest = -np.inf
        self.total = 0.0
        self.count = 0

    def add(self, chunk: Array) -> None:
        self.least = min(self.least, float(chunk.min()))
        self.greatest = max(self.greatest, float(chunk.max()))
        self.total += float(chunk.sum(dtype=np.float64))
        self.count += chunk.size

    def as_json(self) -> dict[str, float]:
        return {"min": self.least, "max": self.greatest, "mean": self.total / self.count}


def _keep_first(kept: list[Any], chunk: Array) -> None:
    missing = PREVIEW_ROWS - len(kept)
    kept.extend(row.reshape(-1)[:PREVIEW_VALUES].tolist() for row in chunk[:missing])
