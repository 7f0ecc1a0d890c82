"""`manage.py reconcile_stripe --days 7`: pair Stripe's movements with the ledger; exit 1 on any difference."""

from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from billing.errors import StripeError
from billing.gateway.client import gateway
from billing.management.texts import table
from billing.models import Unmatched
from billing.reconciliation import EARLIER, reconcile
from billing.services import unmatched_note
from common.clock import utc_now
from common.money import format_usd

HEADINGS = ("ledger", "stripe", "kind", "stripe says", "ledger says")


class Command(BaseCommand):
    help = "Pair every movement of the balance at Stripe with a transfer of the ledger."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--days", type=int, default=7, help="how far to look back (default: %(default)s)")

    def handle(self, *args: Any, **options: Any) -> None:
        now = utc_now()
        since = now - timedelta(days=options["days"])
        try:
            result = reconcile(gateway().balance_transactions(since=since - EARLIER), since=since, now=now)
        except StripeError as error:
            raise CommandError(error.message) from error
        unmatched = unmatched_note(mismatches=result.mismatches, since=since, now=now)
        if unmatched:
            self.stdout.write(table(HEADINGS, [*map(_cells, unmatched)]))
            raise CommandError(
                f"{len(unmatched)} movement(s) differ: see {settings.PUBLIC_URL}/admin/billing/unmatched/.",
                returncode=1,
            )
        self.stdout.write(f"{result.paired} movements agree; {result.outside} are outside the books.")


def _cells(mismatch: Unmatched) -> tuple[str, ...]:
    return (
        mismatch.ledger_key or "-",
        mismatch.stripe_id or "-",
        mismatch.kind,
        *(
            "nothing" if amount is None else format_usd(amount)
            for amount in (mismatch.stripe_microusd, mismatch.ledger_microusd)
        ),
    )
