"""Random numbers from a counter: the published answers of Philox, and ours as vectors for other languages."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metal_kernels.program.random import philox, uniform_numbers

VECTORS = json.loads((Path(__file__).parent / "vectors" / "random.json").read_text())

SEEDS = st.integers(0, 2**53 - 1)
STEPS = st.integers(1, 1000)


@pytest.mark.parametrize("case", VECTORS["philox"])
def test_philox_gives_the_known_answers_of_random123(case: dict[str, list[str]]) -> None:
    counter, key, words = ([int(word, 16) for word in case[name]] for name in ("counter", "key", "words"))
    assert philox(np.array(counter, np.uint32), (key[0], key[1])).tolist() == words


@pytest.mark.parametrize("case", VECTORS["uniform"])
def test_uniform_numbers_follow_the_vectors(case: dict[str, list[float]]) -> None:
    arguments = {name: case[name] for name in ("seed", "step", "stream", "elements")}
    assert uniform_numbers(**arguments).tolist() == case["numbers"]  # type: ignore[arg-type]


@given(seed=SEEDS, step=STEPS, elements=st.integers(1, 40))
def test_a_number_depends_on_its_own_place_alone(seed: int, step: int, elements: int) -> None:
    few = uniform_numbers(seed=seed, step=step, stream=0, elements=elements)
    many = uniform_numbers(seed=seed, step=step, stream=0, elements=elements + 9)
    assert few.tolist() == many[:elements].tolist()
    assert few.min() >= 0
    assert few.max() < 1


@given(seed=SEEDS, step=STEPS)
def test_another_seed_step_or_stream_gives_other_numbers(seed: int, step: int) -> None:
    drawn = [
        uniform_numbers(seed=one, step=when, stream=stream, elements=8).tolist()
        for one, when, stream in [
            (seed, step, 0), (seed ^ 1, step, 0), (seed ^ 2**40, step, 0), (seed, step + 1, 0), (seed, step, 1),
        ]
    ]  # fmt: skip
    assert all(drawn[0] != other for other in drawn[1:])


def test_the_numbers_are_spread_evenly() -> None:
    numbers = uniform_numbers(seed=7, step=1, stream=0, elements=100_000)
    counts = np.histogram(numbers, bins=50, range=(0, 1))[0]
    assert np.abs(counts - 2000).max() < 5 * np.sqrt(2000)
