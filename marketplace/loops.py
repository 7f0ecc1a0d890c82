"""The two loops behind the site: the dispatcher that leases work, and the settler that pays for it."""

import asyncio
import logging

from marketplace.settlement import Settler
from scheduler.dispatcher import Dispatcher

log = logging.getLogger(__name__)


async def run_loops() -> None:
    """Run both until cancelled. Each survives its own failures; if one ends all the same, both do."""
    async with asyncio.TaskGroup() as loops:
        loops.create_task(Dispatcher().run(), name="dispatcher")
        loops.create_task(Settler().run(), name="settler")
