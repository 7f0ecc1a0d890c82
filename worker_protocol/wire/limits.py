"""The bounds of `nightshift.v1`, and the token bucket that holds the one on speed.

All times are integer milliseconds of any steady clock, so that every language computes the same.
"""

MAX_FRAME_BYTES = 64 * 1024
MESSAGES_PER_SECOND = 20
BURST_MESSAGES = 60
AUTH_TIMEOUT_MS = 10_000
HEARTBEAT_MS = 10_000
MISSED_HEARTBEATS = 3

_FULL_TOKEN = 1_000  # thousandths of a message, so that a millisecond's refill is a whole number


class TokenBucket:
    """Lets `rate_per_s` messages a second through, after a first burst of `burst`."""

    def __init__(self, *, rate_per_s: int, burst: int, now_ms: int) -> None:
        self._rate_per_s = rate_per_s
        self._capacity = burst * _FULL_TOKEN
        self._tokens = self._capacity
        self._filled_ms = now_ms

    def take(self, now_ms: int) -> bool:
        """Take one message's token; False when there is none."""
        elapsed_ms = max(0, now_ms - self._filled_ms)
        self._filled_ms += elapsed_ms
        self._tokens = min(self._capacity, self._tokens + elapsed_ms * self._rate_per_s)
        if self._tokens < _FULL_TOKEN:
            return False
        self._tokens -= _FULL_TOKEN
        return True
