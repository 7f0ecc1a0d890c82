"""`manage.py serve`, at which a device that has failed or given work back gets its next after a second.

Run as `python -m tests.phone.hasty_site --port PORT`. All else takes as long as on any site.
"""

import os
import sys
from datetime import timedelta

from scheduler.domain import limits

# Before anything that takes its own copy is imported.
limits.REST = limits.BENCH_FIRST = timedelta(seconds=1)

import django  # noqa: E402
from django.core.management import call_command  # noqa: E402

if __name__ == "__main__":
    os.environ["DJANGO_SETTINGS_MODULE"] = "marketplace.settings"
    django.setup()
    call_command("serve", *sys.argv[1:])
