"""What the commands share: people by their address, and tables."""

from collections.abc import Sequence

from django.core.management.base import CommandError

from accounts.models import User


def person_at(email: str, *, option: str) -> User:
    """The person with this e-mail address. Raises CommandError, naming the option it was given by."""
    try:
        return User.objects.get(email=email.lower())
    except User.DoesNotExist:
        raise CommandError(f"{option}: nobody has the address {email}; sign up first.") from None


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns as wide as their widest cell."""
    lines = [headings, *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )
