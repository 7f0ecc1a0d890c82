"""The server's terms in words, for the person at the terminal."""

from datetime import datetime, timedelta, tzinfo

from common.money import format_usd
from worker_protocol.wire import messages as msg


def terms_words(terms: msg.Terms, *, now: datetime, tz: tzinfo | None = None) -> str:
    """As 'idle window open until 07:00; $0.288 an hour of GPU time, $0.01 earned since noon', on the clock of tz."""
    rate = f"{format_usd(terms.microusd_per_gpu_hour)} an hour of GPU time"
    return f"{_window_words(terms, now, tz)}{rate}, {format_usd(terms.earned_microusd)} earned since noon"


def _window_words(terms: msg.Terms, now: datetime, tz: tzinfo | None) -> str:
    if terms.closes_ms is not None:
        return f"idle window open until {_clock_words(terms.closes_ms, now, tz)}; "
    if terms.opens_ms is not None:
        return f"idle window opens at {_clock_words(terms.opens_ms, now, tz)}; "
    return ""


def _clock_words(at_ms: int, now: datetime, tz: tzinfo | None) -> str:
    """The time of day, and the day where it is not within the next one."""
    at = datetime.fromtimestamp(at_ms / 1000, now.tzinfo).astimezone(tz)
    return f"{at:%H:%M}" if at - now < timedelta(days=1) else f"{at:%A %H:%M}"
