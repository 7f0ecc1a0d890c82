"""How a dataset's rows are divided: a validation split, and slices of the rest, each the data of one shard.

Pure: the same rows, split and seed give the same division.
"""

import math
from dataclasses import dataclass

import numpy as np

from marketplace.datasets.arrays import Array
from marketplace.errors import JobInvalid

MAX_SLICES = 2_048


@dataclass(frozen=True, slots=True)
class Division:
    """Row numbers of the dataset: those held out, and those of each slice, shuffled."""

    validation: Array
    slices: tuple[Array, ...]


def training_rows(*, rows: int, validation_split: float, batch_size: int) -> int:
    """How many rows are left to train on; raises JobInvalid if they are fewer than a batch."""
    left = rows - _validation_rows(rows, validation_split)
    if left < 1:
        raise JobInvalid(
            f"validation_split: {validation_split} of {rows} rows leaves none to train on. Choose less.",
            field="validation_split",
        )
    if batch_size > left:
        raise JobInvalid(
            f"batch_size: {batch_size} is more than the {left} rows of the training split. Choose less.",
            field="batch_size",
        )
    return left


def slice_count(*, train_rows: int, batch_size: int, local_steps: int, shards_per_round: int) -> int:
    """At least one slice for each shard of a round, and no more rows in each than its steps go through."""
    wanted = math.ceil(train_rows / (local_steps * batch_size))
    return min(MAX_SLICES, max(shards_per_round, wanted))


def slice_rows_at_most(*, train_rows: int, batch_size: int, slices: int) -> int:
    return max(batch_size, math.ceil(train_rows / slices))


def divide(
    *, rows: int, validation_split: float, seed: int, batch_size: int, local_steps: int, shards_per_round: int
) -> Division:
    """Shuffle once, hold out, cut the rest evenly.

    Where an even cut would be smaller than a batch, slices reach on into the rows of their neighbours, so that
    each still fills a batch; no slice has a row twice.
    """
    train_rows = training_rows(rows=rows, validation_split=validation_split, batch_size=batch_size)
    order = np.random.Generator(np.random.PCG64(seed)).permutation(rows)
    held_out, train = order[train_rows:], order[:train_rows]
    count = slice_count(
        train_rows=train_rows,
        batch_size=batch_size,
        local_steps=local_steps,
        shards_per_round=shards_per_round,
    )
    slices = []
    for index in range(count):
        start, end = index * train_rows // count, (index + 1) * train_rows // count
        reach = max(end - start, batch_size)
        slices.append(train[np.arange(start, start + reach) % train_rows])
    return Division(held_out, tuple(slices))


def rounds_for(
    *, epochs: int, train_rows: int, batch_size: int, local_steps: int, shards_per_round: int
) -> int:
    """Rounds until as many samples have been trained as `epochs` passes over the training split have."""
    return math.ceil(epochs * train_rows / (shards_per_round * local_steps * batch_size))


def _validation_rows(rows: int, validation_split: float) -> int:
    return max(1, round(rows * validation_split))
