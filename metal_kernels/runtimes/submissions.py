"""How much work goes to the GPU at once: the same plan as the browser's `runtime/submissions.js`.

A phone's watchdog ends long submissions, so each is meant to take at most `SUBMISSION_MS`; a step too long for that
is cut between its dispatches. Estimates come with the program and are corrected by what is measured.
"""

from collections.abc import Iterable, Sequence
from typing import Final

SUBMISSION_MS: Final = 100.0

LARGEST_CORRECTION: Final = 2.0
"""Measured times correct measured ones by at most this factor at once: a busy moment is no lasting change."""


NAMED_AT_MOST: Final = 5


def kernels_named(names: Sequence[str]) -> str:
    """The kernels of one submission for a sentence: a GPU that gives up does not tell at which of them."""
    kernels = f"kernel{'s' * (len(names) > 1)} {', '.join(names[:NAMED_AT_MOST])}"
    more = len(names) - NAMED_AT_MOST
    return f"{kernels} and {more} more" if more > 0 else kernels


class SubmissionPlan:
    """Work is counted through all steps: piece p is dispatch p % dispatches of step p // dispatches."""

    def __init__(self, estimates_ms: Iterable[float]) -> None:
        self._estimates_ms = list(estimates_ms)
        self._measured = [False] * len(self._estimates_ms)

    def end_of(self, start: int, total: int) -> int:
        """The end of the submission that starts with piece `start`; there are `total` pieces."""
        end, sum_ms = start, 0.0
        while end < total:
            sum_ms += self._estimates_ms[end % len(self._estimates_ms)]
            if sum_ms > SUBMISSION_MS and end > start:
                break
            end += 1
        return end

    def learn(self, start: int, end: int, measured_ms: float) -> None:
        """The submission of the pieces from `start` to `end` took `measured_ms`."""
        count = len(self._estimates_ms)
        estimated_ms = sum(self._estimates_ms[piece % count] for piece in range(start, end))
        positions = [piece % count for piece in range(start, min(end, start + count))]
        correction = max(measured_ms / estimated_ms, 1 / LARGEST_CORRECTION)
        if all(self._measured[position] for position in positions):
            correction = min(correction, LARGEST_CORRECTION)
        for position in positions:
            self._estimates_ms[position] *= correction
            self._measured[position] = True
