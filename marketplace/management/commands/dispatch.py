"""`manage.py dispatch`: the dispatcher and the settler without a web server, for deployments of many processes.

Several may run: one dispatches, the others stand by and take over when it stops.
"""

import asyncio
import contextlib
from typing import Any

from django.core.management.base import BaseCommand

from marketplace.loops import run_loops


class Command(BaseCommand):
    help = "Run the dispatcher and the settler, without a web server."

    def handle(self, *args: Any, **options: Any) -> None:
        with contextlib.suppress(KeyboardInterrupt):
            asyncio.run(run_loops())
