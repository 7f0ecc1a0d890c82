"""The learning rate of a round follows the run's schedule, and reaches the device in its lease."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.domain.spec import learning_rate_in_round, spec_check
from scheduler.errors import RunInvalid

from .world import spec

rounds = st.integers(1, 1_000)


@given(base=st.floats(1e-6, 10), planned=rounds, index=rounds)
def test_a_constant_rate_never_changes(base, planned, index):
    assert learning_rate_in_round(base, "constant", round_index=index, rounds_planned=planned) == base


@given(base=st.floats(1e-6, 10), planned=rounds)
def test_a_cosine_starts_at_the_base_and_falls_in_every_round_without_reaching_zero(base, planned):
    rates = [
        learning_rate_in_round(base, "cosine", round_index=i, rounds_planned=planned) for i in range(planned)
    ]
    assert rates[0] == base
    assert all(later < earlier for earlier, later in pairwise(rates))
    assert rates[-1] > 0


def test_an_unknown_schedule_is_refused_by_name():
    with pytest.raises(RunInvalid) as raised:
        spec_check(spec(schedule="sawtooth"))
    assert raised.value.field == "schedule"
