"""The bench's rows judge their own targets; no target is ever judged met without a figure."""

import pytest

from tests.bench.rows import Row, beside


@pytest.mark.parametrize(
    ("value", "target", "verdict"),
    [(96.0, ">= 96", "met"), (95.9, ">= 96", "missed"), (60.0, "< 60", "missed"), (1.0, None, "")],
)
def test_a_target_on_the_value_is_judged_by_it(value, target, verdict):
    assert Row(name="figure", value=value, unit="", target=target).verdict == verdict


def test_a_target_on_the_ratio_needs_a_reference():
    row = beside(name="bytes", value=1, unit="B", reference="all", reference_value=40, target="ratio <= 0.05")
    assert row.ratio == 1 / 40
    assert row.verdict == "met"
    assert Row(name="bytes", value=1, unit="B", target="ratio <= 0.05").verdict == "missed"
