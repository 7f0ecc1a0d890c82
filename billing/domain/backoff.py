"""When to try again what failed for no reason of its own."""

from datetime import datetime, timedelta

FIRST_PAUSE = timedelta(seconds=30)
LONGEST_PAUSE = timedelta(hours=6)
MAX_TRIES = 12  # about a day and a half; after that somebody must look


def next_try(*, tries: int, now: datetime) -> datetime | None:
    """After so many tries, the time of the next; None when there have been enough."""
    if tries >= MAX_TRIES:
        return None
    return now + min(FIRST_PAUSE * (1 << tries), LONGEST_PAUSE)
