"""Checks of input that several services share."""

from zoneinfo import available_timezones

from accounts.errors import InvalidAddress, InvalidName, UnknownTimeZone

NAME_MAX_LENGTH = 60
ADDRESS_MAX_CHARS = 500
ADDRESS_MAX_LINES = 8


def checked_name(name: str) -> str:
    """The name without outer blanks; raises InvalidName unless it is 1 to 60 printable characters."""
    name = name.strip()
    if not name or len(name) > NAME_MAX_LENGTH or not name.isprintable():
        raise InvalidName(f"Give a name of 1 to {NAME_MAX_LENGTH} printable characters.", field="name")
    return name


def checked_time_zone(time_zone: str) -> str:
    if time_zone not in available_timezones():
        raise UnknownTimeZone(
            f"{time_zone[:64]!r} is not a time zone; give an IANA name such as Europe/Berlin.",
            field="time_zone",
        )
    return time_zone


def checked_address(address: str) -> str:
    """The lines that say something, without outer blanks; raises InvalidAddress for too many or unprintable ones."""
    lines = [line.strip() for line in address.splitlines() if line.strip()]
    text = "\n".join(lines)
    if (
        len(lines) > ADDRESS_MAX_LINES
        or len(text) > ADDRESS_MAX_CHARS
        or not all(map(str.isprintable, lines))
    ):
        raise InvalidAddress(
            f"Give at most {ADDRESS_MAX_LINES} lines of {ADDRESS_MAX_CHARS} printable characters together.",
            field="invoice_address",
        )
    return text
