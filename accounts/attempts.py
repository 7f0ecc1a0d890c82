"""A bound on how often someone may guess, kept in Django's cache."""

import hashlib
from dataclasses import dataclass
from datetime import timedelta

from django.core.cache import cache


@dataclass(frozen=True, slots=True)
class AttemptLimit:
    """At most `attempts` failures by one key in a stretch of time that begins with the first.

    An attempt is counted before it is made and given back when it succeeds, so that many at once cannot slip past.
    """

    name: str
    attempts: int
    per: timedelta

    @property
    def minutes(self) -> int:
        return round(self.per / timedelta(minutes=1))

    def take(self, key: str) -> bool:
        """Count one attempt; False if there have been too many."""
        entry = self._entry(key)
        cache.add(entry, 0, timeout=self.per.total_seconds())
        try:
            return cache.incr(entry) <= self.attempts
        except ValueError:  # it expired in between
            return True

    def give_back(self, key: str) -> None:
        """The attempt succeeded: it does not count."""
        try:
            cache.decr(self._entry(key))
        except ValueError:
            return

    def _entry(self, key: str) -> str:
        digest = hashlib.sha256(
            key.encode()
        ).hexdigest()  # caches are particular about their keys' characters
        return f"attempts:{self.name}:{digest}"
