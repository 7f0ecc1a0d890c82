from datetime import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accounts.domain.windows import Window
from marketplace.pages.window_rows import days_words, window_lines, window_rows

windows = st.sets(
    st.builds(
        Window, st.integers(0, 6), st.sampled_from([time(1), time(22)]), st.sampled_from([time(7), time(9)])
    )
)


@pytest.mark.parametrize(
    ("days", "text"),
    [
        ([0, 1, 2, 3, 4, 5, 6], "Every day"),
        ([0, 1, 2, 3, 4], "Monday to Friday"),
        ([5, 6], "Saturday and Sunday"),
        ([0, 2, 4], "Monday, Wednesday and Friday"),
        ([3], "Thursday"),
    ],
)
def test_days_are_named_as_shortly_as_people_do(days, text):
    assert days_words(days) == text


def test_a_window_that_ends_where_it_starts_is_a_whole_day():
    assert window_lines([Window(1, time(0), time(0))]) == ("Tuesday, all day",)
    assert window_lines([Window(1, time(8), time(8))]) == ("Tuesday, 24 hours from 08:00",)


@given(windows)
def test_rows_hold_exactly_the_windows_they_were_made_of(given_windows):
    rows = window_rows(given_windows)
    assert {Window(day, row.starts, row.ends) for row in rows for day in row.days} == given_windows
    assert len({(row.starts, row.ends) for row in rows}) == len(rows)
