"""Sizes in words: three digits that matter, in powers of a thousand."""

import pytest

from common.units import format_bytes


@pytest.mark.parametrize(
    ("size_bytes", "words"),
    [
        (0, "0 bytes"),
        (999, "999 bytes"),
        (1_000, "1.00 kB"),
        (12_345, "12.3 kB"),
        (512_000_000, "512 MB"),
        (1_073_741_823, "1.07 GB"),
        (1_500_000_000, "1.50 GB"),
    ],
)
def test_a_size_in_words(size_bytes, words):
    assert format_bytes(size_bytes) == words
