"""The loop that sees real money through; `billing.due` is what it has done."""

import asyncio
import logging

from channels.db import database_sync_to_async

from billing.tasks import advance_payments

log = logging.getLogger(__name__)

LOOK_EVERY_S = 5.0


class Cashier:
    """Looks on a timer: nothing here is in a hurry."""

    def __init__(self, *, look_every_s: float = LOOK_EVERY_S) -> None:
        self._look_every_s = look_every_s

    async def run(self) -> None:
        """Until cancelled. A pass that fails is logged; the next one comes all the same."""
        while True:
            try:
                await database_sync_to_async(advance_payments.delay, thread_sensitive=False)()
            except Exception:
                log.exception("payments could not be seen to; it will be tried again")
            await asyncio.sleep(self._look_every_s)
