"""`manage.py check_ledger`: recompute every balance from its postings; exit 1 on any difference."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from billing.models import Account, Transfer
from billing.selectors import Difference, ledger_differences
from common.money import format_usd

HEADINGS = ("rule", "which", "expected", "found")


class Command(BaseCommand):
    help = "Recompute every balance from its postings and print what differs."

    def handle(self, *args: Any, **options: Any) -> None:
        differences = ledger_differences()
        if differences:
            self.stdout.write(_table(differences))
            raise CommandError(f"The ledger has {len(differences)} difference(s).", returncode=1)
        self.stdout.write(
            f"The ledger is right: {Account.objects.count()} accounts, {Transfer.objects.count()} transfers."
        )


def _table(differences: list[Difference]) -> str:
    rows = [
        HEADINGS,
        *(
            (d.rule, d.name, format_usd(d.expected_microusd), format_usd(d.found_microusd))
            for d in differences
        ),
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )
