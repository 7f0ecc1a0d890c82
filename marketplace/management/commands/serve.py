"""`manage.py serve`: the whole site in one process, which is how it runs embedded.

Daphne serves pages, the API and devices' sockets; the dispatcher and the settler run on the same event loop. With
Redis and PostgreSQL set, run several of these, or `daphne marketplace.asgi:application` beside `manage.py dispatch`.
"""

import asyncio
from argparse import ArgumentParser
from typing import Any

from daphne.endpoints import build_endpoint_description_strings
from daphne.server import Server
from django.conf import settings
from django.core.management.base import BaseCommand

from marketplace.asgi import application
from marketplace.loops import run_loops
from worker_protocol.wire.limits import MAX_FRAME_BYTES


class Command(BaseCommand):
    help = "Serve the site and its fleet manager in one process."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--host", default="127.0.0.1")
        parser.add_argument("--port", type=int, default=8000)

    def handle(self, *args: Any, host: str, port: int, **options: Any) -> None:
        server = Server(
            application,
            endpoints=build_endpoint_description_strings(host=host, port=port),
            websocket_max_message_size=2
            * MAX_FRAME_BYTES,  # over the protocol's own bound, which answers in words
            websocket_max_frame_size=2 * MAX_FRAME_BYTES,
            ready_callable=lambda: self.start(server),
        )
        self.stdout.write(
            f"Nightshift serves {settings.PUBLIC_URL} (listening on {host}:{port}); Ctrl-C stops it."
        )
        server.run()
        if server.abort_start or self.failed:
            raise SystemExit(f"Cannot listen on {host}:{port}. Stop what uses that port, or pass --port.")

    failed = False

    def start(self, server: Server) -> None:
        """Start the loops beside the server; should they ever end, the process ends with them to be started anew."""
        self.loops = asyncio.get_event_loop().create_task(run_loops())
        self.loops.add_done_callback(lambda _: server.stop())
