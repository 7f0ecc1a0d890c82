"""The whole site in a process of its own, with an owner; the app's worker is one that a test plays.

Run as `python -m tests.phone.shell.site PORT [CODES]`; prints `{"codes": [...]}` on its first start on a folder.
"""

import json
import os
import sys
from typing import Any

import django

os.environ["DJANGO_SETTINGS_MODULE"] = "marketplace.settings"
django.setup()

from daphne.server import Server  # noqa: E402 - Django first, here and below
from django.conf import settings  # noqa: E402
from django.core.management import call_command  # noqa: E402

from accounts.models import User  # noqa: E402
from accounts.services import pairing_code_create  # noqa: E402
from marketplace.asgi import application  # noqa: E402

EMAIL, PASSWORD = "ada@example.org", "correct horse battery"


def main(port: int, codes: int) -> None:
    settings.ROOT_URLCONF = "tests.phone.shell.urls"
    call_command("migrate", verbosity=0)
    if not User.objects.exists():
        owner = User.objects.create_user(EMAIL, PASSWORD, time_zone="Europe/Berlin")
        made = [pairing_code_create(owner=owner)[1] for _ in range(codes)]
        print(json.dumps({"codes": made}), flush=True)
    server: Any = Server  # daphne has no types
    server(application, endpoints=[f"tcp:port={port}:interface=127.0.0.1"]).run()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
