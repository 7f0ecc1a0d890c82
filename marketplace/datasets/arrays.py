"""An uploaded array before it is read: what its header promises, and its rows in bounded chunks."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

CHUNK_BYTES = 4 * 1024 * 1024
MAX_CLASSES = 65_536

# Arrays may be called by either name of a pair.
INPUT_NAMES = ("inputs", "x")
TARGET_NAMES = ("targets", "y")


@dataclass(frozen=True, slots=True)
class ArraySource:
    """`chunks()` walks the rows anew at each call; every chunk has `shape[1:]` behind its row axis."""

    field: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    chunks: Callable[[], Iterator[Array]]

    @property
    def rows(self) -> int:
        return self.shape[0]


@dataclass(frozen=True, slots=True)
class UploadedArrays:
    inputs: ArraySource
    targets: ArraySource
    labels: tuple[str, ...] = ()  # names of the classes, where the file had words for targets


def chunk_rows(shape: tuple[int, ...], item_bytes: int) -> int:
    """How many rows make a chunk of about CHUNK_BYTES."""
    row_bytes = item_bytes
    for size in shape[1:]:
        row_bytes *= size
    return max(1, CHUNK_BYTES // max(1, row_bytes))
