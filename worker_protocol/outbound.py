"""Frames on their way to one device, bounded: a device that does not read is cut off, not waited for."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress

log = logging.getLogger(__name__)

MAX_QUEUED_FRAMES = 64


class Outbound:
    """Writes frames in order from a task of its own, so that a slow socket holds nobody else up."""

    def __init__(self, send: Callable[[str], Awaitable[None]]) -> None:
        self.stopped = False
        self._send = send
        self._frames: asyncio.Queue[str] = asyncio.Queue(maxsize=MAX_QUEUED_FRAMES)
        self._writer = asyncio.create_task(self._write())

    def put(self, frame: str) -> bool:
        """Queue a frame; False when the device has let too many pile up."""
        try:
            self._frames.put_nowait(frame)
        except asyncio.QueueFull:
            return False
        return True

    async def finish(self, *, timeout_s: float) -> None:
        """Write what is queued if that goes quickly, then stop."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._frames.join(), timeout_s)
        self.stop()

    def stop(self) -> None:
        self.stopped = True
        self._writer.cancel()

    async def _write(self) -> None:
        while True:
            frame = await self._frames.get()
            try:
                await self._send(frame)
            except Exception:  # its end is reported to the consumer by other means
                log.debug("the socket has gone while it was written to", exc_info=True)
            finally:
                self._frames.task_done()
