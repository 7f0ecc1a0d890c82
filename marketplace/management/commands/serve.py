"""`manage.py serve`: the whole site in one process, which is how it runs embedded.

Daphne serves pages, the API and devices' sockets; the dispatcher and the settler run on the same event loop. In
production `--web-only` leaves these two to `manage.py dispatch`, and any number of both may run.
"""

import asyncio
import signal
from argparse import ArgumentParser
from collections.abc import Coroutine
from typing import Any

from daphne.endpoints import build_endpoint_description_strings
from daphne.server import Server
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from common.wake import channel_layer
from marketplace.asgi import application
from marketplace.body_bound import bodies_bound
from marketplace.loops import run_loops
from scheduler.fleet import SERVER_GROUP
from worker_protocol.wire.limits import MAX_FRAME_BYTES

# Over the protocol's own bound, so that the protocol answers in words before the server hangs up.
SERVER_FRAME_BYTES = 2 * MAX_FRAME_BYTES
# Devices are told to come back after this; a restart takes about as long.
RECONNECT_MS = 3_000
GOODBYE_S = 0.5


class Command(BaseCommand):
    help = "Serve the site and its fleet manager in one process."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--host", default="127.0.0.1", help="to listen on (default: %(default)s)")
        parser.add_argument("--port", type=int, default=8000, help="to listen on (default: %(default)s)")
        parser.add_argument(
            "--web-only", action="store_true", help="leave leasing and settling to `manage.py dispatch`"
        )

    def handle(self, *args: Any, host: str, port: int, web_only: bool, **options: Any) -> None:
        server: Server = Server(
            application,
            endpoints=build_endpoint_description_strings(host=host, port=port),
            signal_handlers=False,
            websocket_max_message_size=SERVER_FRAME_BYTES,
            websocket_max_frame_size=SERVER_FRAME_BYTES,
            ready_callable=lambda: _start(server, _serve_only() if web_only else run_loops()),
        )
        self.stdout.write(f"Nightshift serves {settings.PUBLIC_URL} (on {host}:{port}); Ctrl-C stops it.")
        server.run()
        if not server.listening_addresses:
            raise CommandError(f"Cannot listen on {host}:{port}. Stop what uses that port, or pass --port.")


def _start(server: Server, loops: Coroutine[Any, Any, None]) -> None:
    """Start the loops beside the server; should they ever end, the process ends, to be started anew."""
    bodies_bound(server)
    event_loop = asyncio.get_event_loop()
    running = event_loop.create_task(loops)
    running.add_done_callback(lambda _: server.stop())
    for signum in (signal.SIGINT, signal.SIGTERM):
        event_loop.add_signal_handler(signum, lambda: event_loop.create_task(_say_goodbye(running)))


async def _serve_only() -> None:
    """In place of the loops: nothing, until cancelled."""
    await asyncio.Event().wait()


async def _say_goodbye(loops: asyncio.Task[None]) -> None:
    """Tell this process's devices to come back soon, then end the loops and with them the server."""
    try:
        await channel_layer().group_send(SERVER_GROUP, {"type": "fleet.drain", "reconnect_ms": RECONNECT_MS})
        await asyncio.sleep(GOODBYE_S)
    finally:  # without a channel layer the devices find out by themselves
        loops.cancel()
