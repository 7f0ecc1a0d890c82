"""`manage.py set_rate phone-high 450 --operator EMAIL --reason WORDS [--from 2027-01-01T00:00]`; or `fee`."""

from argparse import ArgumentParser
from datetime import UTC, datetime
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from accounts.models import User
from billing.management.texts import person_at
from billing.models import Fee, Rate
from billing.services import fee_set, rate_set
from common.clock import utc_now
from common.errors import NightshiftError


class Command(BaseCommand):
    help = (
        "Set what a GPU-second of a device class costs, in micro-USD, or the fee, in basis points. "
        "Jobs that are quoted or running keep their prices. It is written in the audit log."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("what", help="a device class, as phone-high, or fee")
        parser.add_argument("value", type=int, help="micro-USD per GPU-second, or basis points")
        parser.add_argument("--operator", required=True, help="e-mail address of the operator who sets it")
        parser.add_argument("--reason", required=True, help="why")
        parser.add_argument(
            "--from",
            dest="start",
            type=_moment,
            help="when it begins, UTC, as 2027-01-01T00:00; default: now",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        operator = person_at(options["operator"], option="--operator")
        try:
            row = _set(options["what"], options["value"], operator, options["reason"], options["start"])
        except NightshiftError as error:
            raise CommandError(error.message) from error
        self.stdout.write(f"Set: {row} UTC.")


def _set(what: str, value: int, operator: User, reason: str, start: datetime | None) -> Rate | Fee:
    given: dict[str, Any] = {
        "operator": operator,
        "reason": reason,
        "valid_from": start,
        "now": utc_now(),
    }
    if what == "fee":
        return fee_set(basis_points=value, **given)
    return rate_set(device_class=what, microusd_per_gpu_second=value, **given)


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
