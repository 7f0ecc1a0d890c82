"""`manage.py collect_blobs`: remove blobs that nobody holds, stale uploads and what crashes left behind."""

from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from blobs.services import blobs_collect
from common.clock import utc_now


class Command(BaseCommand):
    help = "Remove blobs that nobody holds, stale uploads and what crashes left behind."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--hours", type=float, default=24, help="leave alone what is younger (default: 24)"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["hours"] < 1:
            raise CommandError("--hours must be at least 1: what is younger may be on its way in just now.")
        collected = blobs_collect(older_than=utc_now() - timedelta(hours=options["hours"]))
        self.stdout.write(f"Collected {collected} blobs.")
