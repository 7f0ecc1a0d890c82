"""The one place that reads the wall clock, so that decisions can take time as an argument."""

from datetime import UTC, datetime


def utc_now() -> datetime:
    return datetime.now(tz=UTC)
