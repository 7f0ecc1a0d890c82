"""The loop that has finished work paid for and delivered; `marketplace.jobs.settling` is what it has done."""

import asyncio
import contextlib
import logging

from channels.db import database_sync_to_async

from common.wake import SETTLER, channel_layer
from marketplace.tasks import settle

log = logging.getLogger(__name__)

LOOK_EVERY_S = 5.0


class Settler:
    """Woken when there is news, and looking by itself in case a wake-up was lost."""

    def __init__(self, *, look_every_s: float = LOOK_EVERY_S) -> None:
        self._look_every_s = look_every_s

    async def run(self) -> None:
        """Until cancelled. A pass that fails is logged; the next one comes all the same."""
        while True:
            try:
                await database_sync_to_async(settle.delay, thread_sensitive=False)()
            except Exception:
                log.exception("settling failed; it will be tried again")
            await self._news()

    async def _news(self) -> None:
        """Wait to be woken, or for the time to look anyway: a channel layer that fails wakes nobody."""
        until = asyncio.get_running_loop().time() + self._look_every_s
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout_at(until):
                try:
                    await channel_layer().receive(SETTLER)
                except Exception as error:
                    log.warning("no wake-ups for now: %s", error)
                    await asyncio.sleep(self._look_every_s)
