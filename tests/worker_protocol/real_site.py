"""A site in a process of its own: daphne, the fleet manager and the dispatcher, with one run to train.

Run as `python -m tests.worker_protocol.real_site PORT CODES`; the first start makes the run and prints
`{"run", "codes"}`, a start on the same folder goes on where the last one was killed.
"""

import asyncio
import json
import os
import sys
from collections.abc import Callable
from datetime import time
from typing import Any

import django

os.environ["DJANGO_SETTINGS_MODULE"] = "marketplace.settings"
django.setup()

from daphne.server import Server  # noqa: E402 - Django first, here and below
from django.conf import settings  # noqa: E402
from django.core.management import call_command  # noqa: E402

from accounts.models import IdleWindow, User  # noqa: E402
from accounts.services import pairing_code_create  # noqa: E402
from marketplace.asgi import application  # noqa: E402
from scheduler.dispatcher import Dispatcher  # noqa: E402
from scheduler.domain.spec import RunSpec  # noqa: E402
from scheduler.services import run_start  # noqa: E402
from tests.scheduler.training import digits_run  # noqa: E402

ROUNDS = 4


def main(
    port: int,
    codes: int,
    *,
    urls: str = "tests.worker_protocol.urls",
    make_spec: Callable[..., RunSpec] = digits_run,
) -> None:
    settings.ROOT_URLCONF = urls
    call_command("migrate", verbosity=0)
    if not User.objects.exists():
        print(json.dumps(furnish(codes, make_spec)), flush=True)
    loops = []

    def start() -> None:
        loops.append(asyncio.get_event_loop().create_task(Dispatcher().run()))

    server: Any = Server  # daphne has no types
    server(application, endpoints=[f"tcp:port={port}:interface=127.0.0.1"], ready_callable=start).run()


def furnish(codes: int, make_spec: Callable[..., RunSpec]) -> dict[str, object]:
    """An owner whose windows are always open, pairing codes for the devices, and a run."""
    owner = User.objects.create_user("ada@example.org", "correct horse battery")
    for weekday in range(7):
        IdleWindow.objects.create(owner=owner, weekday=weekday, starts=time(0), ends=time(0))
    run = run_start(spec=make_spec(shards=2, rounds=ROUNDS))
    return {"run": str(run.id), "codes": [pairing_code_create(owner=owner)[1] for _ in range(codes)]}


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
