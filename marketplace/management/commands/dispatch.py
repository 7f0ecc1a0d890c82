"""`manage.py dispatch`: the dispatcher and the settler without a web server, for deployments of many processes.

Several may run: one dispatches, the others stand by and take over when it stops.
"""

import asyncio
import contextlib
import signal
from typing import Any

from django.core.management.base import BaseCommand

from marketplace.loops import run_loops


class Command(BaseCommand):
    help = "Run the dispatcher and the settler, without a web server."

    def handle(self, *args: Any, **options: Any) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            asyncio.run(_run_until_stopped())


async def _run_until_stopped() -> None:
    """Whoever asks it to stop has the lock released, so that the next dispatcher need not wait for it to expire."""
    loops = asyncio.create_task(run_loops())
    for signum in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(signum, loops.cancel)
    await loops
