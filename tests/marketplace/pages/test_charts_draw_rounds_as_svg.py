"""The charts of a job's page: what they draw, and that nothing in them can be anything but a drawing."""

import math
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marketplace.pages.charts import MAX_POINTS, Series, line_chart, nice_ticks, round_ticks, thinned

finite = st.floats(min_value=-1e9, max_value=1e9, allow_nan=False)


def chart(
    *values: float | None, rounds: int = 10, name: str = "training", ceiling: float | None = None
) -> str:
    series = [Series(name, values)]
    return line_chart(title="Loss", description="By round.", series=series, rounds=rounds, ceiling=ceiling)


def circles(svg: str) -> list[ElementTree.Element]:
    return list(ElementTree.fromstring(svg).iter("circle"))  # noqa: S314 - our own text


def test_every_round_is_a_dot_that_tells_its_value():
    dots = circles(chart(2.0, 1.0, 0.5))
    assert [dot.findtext("title") for dot in dots] == [
        "Round 1, training: 2",
        "Round 2, training: 1",
        "Round 3, training: 0.5",
    ]


def test_a_lower_loss_is_drawn_lower():
    first, last = circles(chart(2.0, 0.5))
    assert float(first.get("cy", "nan")) < float(last.get("cy", "nan"))
    assert float(first.get("cx", "nan")) < float(last.get("cx", "nan"))


def test_a_single_round_is_drawn():
    assert len(circles(chart(0.7))) == 1


def test_without_values_there_is_no_chart():
    assert chart() == ""
    assert chart(None, math.nan, math.inf) == ""


def test_values_that_are_missing_or_not_finite_leave_the_others_at_their_rounds():
    assert [dot.findtext("title") for dot in circles(chart(None, 1.0, math.nan, 0.5))] == [
        "Round 2, training: 1",
        "Round 4, training: 0.5",
    ]


def test_two_lines_differ_by_more_than_their_colour():
    two = [Series("training", [2.0, 1.0]), Series("validation", [2.1, 1.2])]
    svg = line_chart(title="Loss", description="By round.", series=two, rounds=2)
    assert 'class="line"' in svg
    assert 'class="line second"' in svg  # dashed, by the style sheet


def test_names_cannot_break_out_of_the_drawing():
    svg = chart(1.0, name='</text><script>alert("x")</script>')
    assert "<script" not in svg
    assert "&lt;script&gt;" in svg


def test_nothing_in_it_needs_an_inline_style():
    assert "style" not in chart(3.0, 2.0, 1.0)


def test_it_says_what_it_shows_to_those_who_do_not_see_it():
    root = ElementTree.fromstring(chart(1.0))  # noqa: S314 - our own text
    assert root.get("role") == "img"
    assert root.findtext("title") == "Loss"
    assert root.findtext("desc") == "By round."


def test_the_axis_of_a_share_ends_at_the_whole():
    assert max(nice_ticks(0.2, 0.99, ceiling=1.0)) == 1.0
    assert max(nice_ticks(1.0, 1.0, ceiling=1.0)) == 1.0


@given(finite, finite)
def test_ticks_are_few_and_enclose_every_value(one: float, other: float):
    low, high = sorted((one, other))
    ticks = nice_ticks(low, high)
    slack = 1e-6 * max(1.0, abs(low), abs(high))
    assert 2 <= len(ticks) <= 8
    assert ticks[0] <= low + slack
    assert ticks[-1] >= high - slack
    assert ticks == sorted(set(ticks))


@given(st.integers(min_value=2, max_value=100_000))
def test_round_ticks_are_whole_few_and_within_the_job(last: int):
    ticks = round_ticks(last)
    assert ticks[0] == 1
    assert ticks[-1] <= last
    assert len(ticks) <= 8
    assert ticks == sorted(set(ticks))


@pytest.mark.parametrize("count", [1, MAX_POINTS, MAX_POINTS + 1, 12_345])
def test_thinning_keeps_the_first_and_the_last_point(count: int):
    points = [(float(n), 0.0) for n in range(count)]
    kept = thinned(points)
    assert len(kept) <= MAX_POINTS
    assert (kept[0], kept[-1]) == (points[0], points[-1])


@given(st.lists(st.one_of(st.none(), finite), max_size=60), st.integers(min_value=1, max_value=100))
def test_every_dot_is_inside_the_drawing(values: list[float | None], rounds: int):
    svg = chart(*values, rounds=rounds)
    for dot in circles(svg) if svg else []:
        assert 0 <= float(dot.get("cx", "nan")) <= 420
        assert 0 <= float(dot.get("cy", "nan")) <= 240
