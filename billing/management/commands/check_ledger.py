"""`manage.py check_ledger`: recompute every balance from its postings; exit 1 on any difference."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from billing.management.texts import table
from billing.models import Account, Transfer
from billing.selectors import Difference, ledger_differences
from common.money import format_usd

HEADINGS = ("rule", "which", "expected", "found")


class Command(BaseCommand):
    help = "Recompute every balance from its postings and print what differs."

    def handle(self, *args: Any, **options: Any) -> None:
        differences = ledger_differences()
        if differences:
            self.stdout.write(table(HEADINGS, [*map(_cells, differences)]))
            raise CommandError(f"The ledger has {len(differences)} difference(s).", returncode=1)
        self.stdout.write(
            f"The ledger is right: {Account.objects.count()} accounts, {Transfer.objects.count()} transfers."
        )


def _cells(difference: Difference) -> tuple[str, ...]:
    expected, found = difference.expected_microusd, difference.found_microusd
    return difference.rule, difference.name, format_usd(expected), format_usd(found)
