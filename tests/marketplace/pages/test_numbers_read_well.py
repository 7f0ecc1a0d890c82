import math

import pytest

from marketplace.pages import filters


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (filters.usd(1_234), "$0.001234"),
        (filters.usd(None), filters.UNKNOWN),
        (filters.signed_usd(2_000_000), "+$2.00"),
        (filters.signed_usd(-2_000_000), "-$2.00"),
        (filters.seconds(1_200), "1.2 ms"),
        (filters.seconds(2_345_678), "2.35 s"),
        (filters.seconds(90_000_000), "1 min 30 s"),
        (filters.seconds(7_500_000_000), "2 h 5 min"),
        (filters.big(12_345), "12,345"),
        (filters.big(23_456_789), "23.5 million"),
        (filters.big(None), filters.UNKNOWN),
        (filters.percent(0.9634), "96.3 %"),
        (filters.percent(math.nan), filters.UNKNOWN),
        (filters.figure(0.123456), "0.1235"),
        (filters.figure(None), filters.UNKNOWN),
        (filters.shape([1, 8, 8]), "1 \N{MULTIPLICATION SIGN} 8 \N{MULTIPLICATION SIGN} 8"),
        (filters.shape([]), "1"),
        (filters.share_of(1, 4), 0.25),
        (filters.share_of(5, 4), 1.0),
        (filters.share_of(1, 0), 0.0),
        (filters.words("learning_rate"), "learning rate"),
    ],
)
def test_a_number_reads_as_people_write_it(made, text):
    assert made == text
