"""Waits between tries: exponential, with full jitter, so that a fleet cut off together does not return together."""

import random


def backoff_s(attempt: int, *, base_s: float, cap_s: float, rng: random.Random) -> float:
    """A random wait before try number `attempt` (the first is 0): anything up to `base_s * 2^attempt`, capped."""
    ceiling_s = min(cap_s, base_s * 2 ** min(attempt, 32))
    return rng.uniform(0, ceiling_s)
