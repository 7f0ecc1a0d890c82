"""`manage.py freeze payouts --email EMAIL --operator EMAIL --reason WORDS`: stop money; `--lift` ends it."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from accounts.models import User
from billing.management.texts import person_at
from billing.services import payouts_freeze, payouts_unfreeze, wallet_freeze_by_hand, wallet_unfreeze
from common.errors import NightshiftError


class Command(BaseCommand):
    help = "Freeze a person's wallet or payouts, or lift the freeze. It is written in the audit log."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("what", choices=["wallet", "payouts"])
        parser.add_argument("--email", required=True, help="whose")
        parser.add_argument("--operator", required=True, help="e-mail address of the operator who does it")
        parser.add_argument("--reason", required=True, help="a sentence that the person is shown")
        parser.add_argument("--lift", action="store_true", help="end the freeze instead")

    def handle(self, *args: Any, **options: Any) -> None:
        user = person_at(options["email"], option="--email")
        operator = person_at(options["operator"], option="--operator")
        try:
            _act(options["what"], user, operator, options["reason"], lift=options["lift"])
        except NightshiftError as error:
            raise CommandError(error.message) from error
        state = "free again" if options["lift"] else "frozen"
        self.stdout.write(f"The {options['what']} of {user.email}: {state}.")


def _act(what: str, user: User, operator: User, reason: str, *, lift: bool) -> None:
    if what == "payouts":
        act = payouts_unfreeze if lift else payouts_freeze
    else:
        act = wallet_unfreeze if lift else wallet_freeze_by_hand
    act(user=user, operator=operator, reason=reason)
