"""The rows of each step: every row once per pass, the same on every device."""

import json
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from metal_kernels.batches import samples_order

VECTORS = json.loads((Path(__file__).parent / "vectors" / "batches.json").read_text())


def stream(**arguments: int) -> list[int]:
    return [row for batch in samples_order(**arguments) for row in batch.tolist()]


@settings(max_examples=60, deadline=None)
@given(rows=st.integers(1, 60), batch=st.integers(1, 70), seed=st.integers(0, 2**53 - 1))
def test_each_pass_has_every_row_once(rows, batch, seed):
    taken = stream(rows=rows, batch=batch, steps=5, seed=seed)
    assert len(taken) == 5 * batch
    for start in range(0, len(taken) - rows + 1, rows):
        assert sorted(taken[start : start + rows]) == list(range(rows))


def test_passes_and_seeds_have_different_orders():
    first, second = (stream(rows=100, batch=100, steps=2, seed=seed) for seed in (1, 2))
    assert first[:100] != first[100:]
    assert first[:100] != second[:100]
    assert stream(rows=100, batch=100, steps=1, seed=1) != stream(
        rows=100, batch=100, steps=1, seed=1 + 2**32
    )


def test_every_row_is_as_likely_to_come_first():
    firsts = torch.tensor([stream(rows=10, batch=1, steps=1, seed=seed)[0] for seed in range(4000)])
    counts = torch.bincount(firsts, minlength=10)
    assert counts.min() > 330
    assert counts.max() < 470


@pytest.mark.parametrize(
    "wrong", [{"rows": 0}, {"batch": 0}, {"steps": -1}, {"seed": -1}, {"seed": 2**53}, {"rows": 2**32}]
)
def test_impossible_arguments_are_refused_at_once(wrong):
    with pytest.raises(ValueError, match="must be positive"):
        samples_order(**{"rows": 1, "batch": 1, "steps": 1, "seed": 1, **wrong})


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["name"])
def test_the_order_follows_the_published_vectors(vector):
    batches = [batch.tolist() for batch in samples_order(**vector["arguments"])]
    assert batches == vector["batches"]
