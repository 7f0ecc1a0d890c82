"""Sending a part of a file in bounded memory, to a server that is asynchronous or not."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import BinaryIO

from blobs.store import CHUNK_BYTES


class FilePart:
    """Iterates over `length` bytes of a file from where it stands, chunk by chunk; closes it when told."""

    def __init__(self, file: BinaryIO, *, length: int) -> None:
        self._file = file
        self._left = length

    def __iter__(self) -> Iterator[bytes]:
        while chunk := self.read_chunk():
            yield chunk

    def read_chunk(self) -> bytes:
        chunk = self._file.read(min(self._left, CHUNK_BYTES))
        self._left -= len(chunk)
        return chunk

    def close(self) -> None:
        self._file.close()


class AsyncFilePart:
    """The same for an event loop, which it never blocks. (Django reads a plain iterator into memory as a whole.)"""

    def __init__(self, part: FilePart) -> None:
        self._part = part

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while chunk := await asyncio.to_thread(self._part.read_chunk):
            yield chunk

    def close(self) -> None:
        self._part.close()
