"""Which rows each local step of a shard trains on.

The order is part of the work's definition: an audit on another device, in another language, must see the same
rows. So it is made of 32-bit integer arithmetic alone and specified in `docs/programs.md`, with test vectors.
The stream of rows is one shuffled pass over the slice after another, cut into batches; a batch may span two
passes.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

_Words = npt.NDArray[np.uint32]
_GOLDEN: Final = np.uint32(0x9E3779B9)
_MULTIPLIERS: Final = (np.uint32(0x7FEB352D), np.uint32(0x846CA68B))
_MAX_ROWS: Final = 2**32
_MAX_SEED: Final = 2**53


def samples_order(*, rows: int, batch: int, steps: int, seed: int) -> Iterator[Tensor]:
    """For each of `steps` steps the int64 indices (batch,) of its rows, out of `rows` rows.

    `seed` is below 2**53, so that every JSON reader keeps it exact.
    """
    if not (0 < rows < _MAX_ROWS and batch > 0 and steps >= 0 and 0 <= seed < _MAX_SEED):
        raise ValueError("rows and batch must be positive, steps not negative, and 0 <= seed < 2**53")
    return _batches(rows, batch, steps, seed)


def permutation(*, rows: int, seed: int, epoch: int) -> npt.NDArray[np.int64]:
    """The order of one pass: rows sorted by key. Mixing is a bijection, so no two rows share a key."""
    with np.errstate(over="ignore"):
        base = _mix(np.array([seed & 0xFFFFFFFF], dtype=np.uint32))
        base = _mix(base ^ np.uint32(seed >> 32))
        base = _mix(base ^ np.uint32(epoch))
        keys = _mix(_mix(np.arange(rows, dtype=np.uint32)) ^ base)
    return np.argsort(keys).astype(np.int64)


def _batches(rows: int, batch: int, steps: int, seed: int) -> Iterator[Tensor]:
    waiting = np.empty(0, dtype=np.int64)
    epoch = 0
    for _ in range(steps):
        while len(waiting) < batch:
            waiting = np.concatenate([waiting, permutation(rows=rows, seed=seed, epoch=epoch)])
            epoch += 1
        yield torch.from_numpy(waiting[:batch].copy())
        waiting = waiting[batch:]


def _mix(words: _Words) -> _Words:
    """A one-to-one 32-bit integer hash (the constants of "lowbias32"); the sum keeps 0 from mapping to 0."""
    words = words + _GOLDEN
    words = words ^ (words >> np.uint32(16))
    words = words * _MULTIPLIERS[0]
    words = words ^ (words >> np.uint32(15))
    words = words * _MULTIPLIERS[1]
    return words ^ (words >> np.uint32(16))
