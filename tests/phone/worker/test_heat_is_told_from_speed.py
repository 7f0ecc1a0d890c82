"""The thermal state that a browser without a thermometer tells, from the times that its steps take."""

import itertools
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from tests.phone.worker.conftest import Harness

pytestmark = pytest.mark.browser

BUSY_MS = 500  # of each observation
MINUTE = 60_000 // BUSY_MS


class Work:
    """Observations of `BUSY_MS` each, at speeds that are parts of the first one."""

    def __init__(self) -> None:
        self.observations: list[dict[str, Any]] = []
        self.now_ms = 0

    def at(self, speed: float, count: int = 1, *, program: str = "a") -> "Work":
        for _ in range(count):
            self.now_ms += BUSY_MS
            self.observations.append(
                {"program": program, "work": speed * 10, "busy_ms": BUSY_MS, "at_ms": self.now_ms}
            )
        return self

    def rest(self, rest_ms: int) -> "Work":
        self.now_ms += rest_ms
        self.observations.append({"busy_ms": 0, "at_ms": self.now_ms})
        return self

    def seen_by(self, page: Harness) -> list[dict[str, Any]]:
        told: list[dict[str, Any]] = page.call("thermal", self.observations)
        return told


def changes(told: list[dict[str, Any]]) -> list[str]:
    """The states one after the other, each once."""
    states = [one["state"] for one in told]
    return [state for before, state in zip([None, *states], states, strict=False) if state != before]


# The page keeps nothing between examples.
@hypothesis_settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(noise=st.lists(st.floats(0.86, 1.14), min_size=20, max_size=400))
def test_noise_of_a_seventh_changes_nothing(page: Harness, noise: list[float]) -> None:
    work = Work()
    for speed in noise:
        work.at(speed)
    assert changes(work.seen_by(page)) == ["nominal"]


# The page keeps nothing between examples.
@hypothesis_settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    warm_up=st.lists(st.floats(0.05, 1.0), max_size=6),
    hiccups=st.sets(st.integers(0, 5), max_size=6),
)
def test_warming_up_and_hiccups_of_seconds_change_nothing(
    page: Harness, warm_up: list[float], hiccups: set[int]
) -> None:
    work = Work()
    for speed in warm_up:
        work.at(speed)
    for part in range(6):
        work.at(1.0, MINUTE // 2).at(0.05 if part in hiccups else 1.0, 6)
    assert changes(work.seen_by(page)) == ["nominal"]


def test_half_the_speed_for_a_minute_is_fair_and_gets_short_pauses(page: Harness) -> None:
    told = Work().at(1.0, MINUTE).at(0.5, MINUTE).seen_by(page)
    assert changes(told) == ["nominal", "fair"]
    assert told[0]["pause_ms"] == 0
    assert 0 < told[-1]["pause_ms"] < BUSY_MS
    assert told[-1]["speed"] == pytest.approx(0.5, abs=0.1)


def test_half_the_speed_for_an_hour_stays_fair(page: Harness) -> None:
    told = Work().at(1.0, MINUTE).at(0.5, 60 * MINUTE).seen_by(page)
    assert changes(told) == ["nominal", "fair"]


def test_a_speed_that_comes_back_is_nominal_again(page: Harness) -> None:
    told = Work().at(1.0, MINUTE).at(0.5, MINUTE).at(0.95, 3 * MINUTE).seen_by(page)
    assert changes(told) == ["nominal", "fair", "nominal"]


def test_a_quarter_of_the_speed_stops_the_device_until_it_has_rested(page: Harness) -> None:
    told = Work().at(1.0, MINUTE).at(0.25, 2 * MINUTE).rest(60_000).rest(90_000).seen_by(page)
    assert changes(told) == ["nominal", "fair", "serious", "nominal"]
    assert told[-2]["state"] == "serious"


def test_a_relapse_rests_longer(page: Harness) -> None:
    work = Work().at(1.0, MINUTE).at(0.25, 2 * MINUTE).rest(150_000)
    told = work.at(1.0, MINUTE // 2).at(0.25, 2 * MINUTE).rest(150_000).rest(150_000).seen_by(page)
    assert [one["state"] for one in told[-2:]] == ["serious", "nominal"]


def test_a_new_program_starts_as_hot_as_the_last_one_ended(page: Harness) -> None:
    told = Work().at(1.0, MINUTE).at(0.5, MINUTE).at(3.0, MINUTE, program="b").seen_by(page)
    assert changes(told) == ["nominal", "fair"]
    assert told[-1]["speed"] == pytest.approx(0.5, abs=0.1)


# The page keeps nothing between examples.
@hypothesis_settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(speeds=st.lists(st.tuples(st.floats(0.01, 1.5), st.integers(1, 120)), min_size=1, max_size=12))
def test_no_state_lasts_less_than_a_third_of_a_minute_of_work(
    page: Harness, speeds: list[tuple[float, int]]
) -> None:
    work = Work()
    for speed, count in speeds:
        work.at(speed, count)
    told = work.seen_by(page)
    lengths, length = [], 0
    for before, after in itertools.pairwise(told):
        length += 1
        if before["state"] != after["state"]:
            lengths.append(length)
            length = 0
    assert all(count * BUSY_MS >= 20_000 - BUSY_MS for count in lengths[1:])
