"""Random numbers from a counter: the operation `nightshift.random_uniform`, and its meaning.

Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011) turns a counter and a key into
four 32-bit words. Nothing is kept between calls, so every element is drawn by itself, on any device, in any order.
"""

from typing import Any, Final, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Words: TypeAlias = NDArray[np.uint32]

ROUNDS: Final = 10
MULTIPLIERS: Final = (0xD2511F53, 0xCD9E8D57)
KEY_STEPS: Final = (0x9E3779B9, 0xBB67AE85)
WORDS_PER_BLOCK: Final = 4
MANTISSA_BITS: Final = 24
"""A uniform number is the upper bits of a word, as many as float32 keeps."""

SEEDS: Final = ("seed_low", "seed_high")
"""The scalars of a program that hold the shard's seed, as two words of 32 bits."""

SCHEMA: Final = (
    "random_uniform(Tensor seed_low, Tensor seed_high, Tensor step, int stream, SymInt[] size) -> Tensor"
)


def philox(counter: Words, key: tuple[int, int]) -> Words:
    """Four words for each row of four counter words."""
    words = [counter[..., place].astype(np.uint64) for place in range(WORDS_PER_BLOCK)]
    keys = [np.uint64(half) for half in key]
    low = np.uint64(0xFFFFFFFF)
    for turn in range(ROUNDS):
        if turn:
            keys = [(half + np.uint64(step)) & low for half, step in zip(keys, KEY_STEPS, strict=True)]
        products = [
            np.uint64(factor) * words[place] for factor, place in zip(MULTIPLIERS, (0, 2), strict=True)
        ]
        words = [
            (products[1] >> np.uint64(32)) ^ words[1] ^ keys[0],
            products[1] & low,
            (products[0] >> np.uint64(32)) ^ words[3] ^ keys[1],
            products[0] & low,
        ]
    return np.stack(words, axis=-1).astype(np.uint32)


def uniform_numbers(*, seed: int, step: int, stream: int, elements: int) -> NDArray[np.float32]:
    """Numbers of 0 <= u < 1: element `e` is word `e % 4` of the block with counter (e // 4, step, stream, 0)."""
    counter = np.zeros((-(-elements // WORDS_PER_BLOCK), WORDS_PER_BLOCK), np.uint32)
    counter[:, 0] = np.arange(len(counter))
    counter[:, 1], counter[:, 2] = step, stream
    words = philox(counter, seed_halves(seed)).reshape(-1)[:elements]
    return (words >> np.uint32(32 - MANTISSA_BITS)).astype(np.float32) * np.float32(2.0**-MANTISSA_BITS)


def seed_halves(seed: int) -> tuple[int, int]:
    """A seed below 2^53 as two words, the lower first."""
    return seed & 0xFFFFFFFF, seed >> 32


def _draw(seed_low: Tensor, seed_high: Tensor, step: Tensor, stream: int, size: list[int]) -> Tensor:
    low, high = (int(half) & 0xFFFFFFFF for half in (seed_low, seed_high))
    elements = int(np.prod(size, dtype=np.int64))
    numbers = uniform_numbers(seed=high << 32 | low, step=int(step), stream=stream, elements=elements)
    return torch.from_numpy(numbers).reshape(size)


def _shape(seed_low: Tensor, seed_high: Tensor, step: Tensor, stream: int, size: list[Any]) -> Tensor:
    return seed_low.new_empty(size, dtype=torch.float32)


_library: Final = torch.library.Library("nightshift", "DEF")  # type: ignore[no-untyped-call]
_library.define(SCHEMA)  # type: ignore[no-untyped-call]
_library.impl("random_uniform", _draw, "CPU")  # type: ignore[no-untyped-call]
_library.impl("random_uniform", _shape, "Meta")  # type: ignore[no-untyped-call]
