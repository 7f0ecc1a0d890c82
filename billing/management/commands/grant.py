"""`manage.py grant --email buyer@example.org --usd 25 --operator you@example.org --reason WORDS`: fill a wallet."""

import uuid
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from billing.management.texts import person_at
from billing.selectors import wallet_balance
from billing.services import grant_post
from common.errors import NightshiftError
from common.money import format_usd, parse_usd


class Command(BaseCommand):
    help = "Grant money to a person's wallet, as an operator."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--email", required=True, help="whose wallet")
        parser.add_argument("--usd", required=True, help="how much, as 12.50")
        parser.add_argument("--operator", required=True, help="e-mail address of the operator who grants it")
        parser.add_argument("--reason", required=True, help="why; it is written in the audit log")
        parser.add_argument("--memo", default="", help="a note for the person's statement")
        parser.add_argument(
            "--key", help="idempotency key: the same key grants once, however often it is run"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        user = person_at(options["email"], option="--email")
        try:
            transfer = grant_post(
                user=user,
                amount_microusd=parse_usd(options["usd"]),
                operator=person_at(options["operator"], option="--operator"),
                idempotency_key=options["key"] or f"grant:{uuid.uuid4()}",
                reason=options["reason"],
                memo=options["memo"],
            )
        except (NightshiftError, ValueError) as error:
            raise CommandError(str(error)) from error
        self.stdout.write(
            f"Granted under the key {transfer.idempotency_key}. "
            f"The wallet of {user.email} now has {format_usd(wallet_balance(user))}."
        )
