"""How rows are divided into a validation split and slices."""

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from marketplace.errors import JobInvalid
from marketplace.jobs.splitting import MAX_SLICES, divide, rounds_for, training_rows

SHAPES = {
    "rows": st.integers(2, 3000),
    "validation_split": st.floats(0.01, 0.9),
    "batch_size": st.integers(1, 64),
    "local_steps": st.integers(1, 30),
    "shards_per_round": st.integers(1, 12),
}


@given(**SHAPES, seed=st.integers(0, 2**53 - 1))
def test_every_row_is_held_out_or_trained_and_never_both(**shape):
    held_out_rows = max(1, round(shape["rows"] * shape["validation_split"]))
    assume(shape["rows"] - held_out_rows >= shape["batch_size"])
    division = divide(**shape)
    trained = np.concatenate(division.slices)
    assert len(division.validation) == held_out_rows
    assert not set(division.validation) & set(trained)
    assert set(division.validation) | set(trained) == set(range(shape["rows"]))


@given(**SHAPES, seed=st.integers(0, 2**53 - 1))
def test_slices_are_even_fill_a_batch_and_suffice_for_a_round(**shape):
    assume(shape["rows"] - max(1, round(shape["rows"] * shape["validation_split"])) >= shape["batch_size"])
    slices = divide(**shape).slices
    sizes = [len(rows) for rows in slices]
    assert shape["shards_per_round"] <= len(slices) <= MAX_SLICES
    assert min(sizes) >= shape["batch_size"]
    assert max(sizes) - min(sizes) <= 1
    assert all(len(set(rows)) == len(rows) for rows in slices)


def test_slices_do_not_overlap_where_there_is_enough_data():
    division = divide(
        rows=1000, validation_split=0.2, seed=1, batch_size=10, local_steps=4, shards_per_round=3
    )
    trained = np.concatenate(division.slices)
    assert len(division.slices) == 20
    assert len(trained) == len(set(trained)) == 800


def test_sorted_data_is_shuffled_so_that_slices_are_alike():
    classes = np.repeat(np.arange(4), 500)
    division = divide(
        rows=2000, validation_split=0.2, seed=3, batch_size=20, local_steps=10, shards_per_round=4
    )
    for rows in division.slices:
        assert np.bincount(classes[rows], minlength=4).min() > 25


def test_the_seed_decides_the_division():
    shape: dict[str, Any] = {
        "rows": 100,
        "validation_split": 0.2,
        "batch_size": 8,
        "local_steps": 2,
        "shards_per_round": 2,
    }
    one, same, other = (divide(seed=seed, **shape) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.slices[0], same.slices[0])
    assert not np.array_equal(one.slices[0], other.slices[0])


@pytest.mark.parametrize(
    ("rows", "validation_split", "batch_size", "field"),
    [(2, 0.9, 1, "validation_split"), (100, 0.2, 81, "batch_size"), (10, 0.5, 32, "batch_size")],
)
def test_data_too_small_for_a_batch_is_refused(rows, validation_split, batch_size, field):
    with pytest.raises(JobInvalid) as caught:
        training_rows(rows=rows, validation_split=validation_split, batch_size=batch_size)
    assert caught.value.field == field


def test_rounds_cover_the_epochs():
    assert rounds_for(epochs=10, train_rows=1437, batch_size=32, local_steps=20, shards_per_round=3) == 8
    assert rounds_for(epochs=1, train_rows=10, batch_size=8, local_steps=20, shards_per_round=3) == 1
