"""The loops behind the site: the dispatcher leases work, the settler pays for it, the cashier moves real money."""

import asyncio

from billing.cashier import Cashier
from marketplace.settlement import Settler
from scheduler.dispatcher import Dispatcher


async def run_loops() -> None:
    """Run all until cancelled. Each survives its own failures; if one ends all the same, all do."""
    async with asyncio.TaskGroup() as loops:
        loops.create_task(Dispatcher().run(), name="dispatcher")
        loops.create_task(Settler().run(), name="settler")
        loops.create_task(Cashier().run(), name="cashier")
