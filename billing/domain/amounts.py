"""Which amounts of money may move at all."""

from billing.errors import AmountInvalid
from common.money import MICROUSD_PER_USD, format_usd

# A thousand million USD: far above any true transfer, and thousands of them still fit into 64 bits.
MAX_AMOUNT_MICROUSD = 10**15
MICROUSD_PER_CENT = MICROUSD_PER_USD // 100


def check_amount(amount_microusd: int, *, field: str = "amount_microusd") -> None:
    """Raise AmountInvalid, naming `field`, unless this is a whole, positive and sane amount."""
    _check_whole(amount_microusd, field=field)
    if not 0 < amount_microusd <= MAX_AMOUNT_MICROUSD:
        raise AmountInvalid(
            f"{field} must be from 1 to {MAX_AMOUNT_MICROUSD} micro-USD, and is {amount_microusd}.",
            field=field,
        )


def whole_cents(amount_microusd: int, *, field: str = "amount_microusd") -> int:
    """The amount in cents, which is all that cards and banks know. Raises AmountInvalid if there is a rest."""
    check_amount(amount_microusd, field=field)
    cents, rest = divmod(amount_microusd, MICROUSD_PER_CENT)
    if rest:
        raise AmountInvalid(
            f"{field} must be whole cents, a multiple of {MICROUSD_PER_CENT}, and is {amount_microusd}.",
            field=field,
        )
    return cents


def check_amount_between(
    amount_microusd: int, *, least_microusd: int, most_microusd: int, field: str = "amount_microusd"
) -> None:
    """Raise AmountInvalid, naming both bounds, unless the amount is whole cents within them."""
    _check_whole(amount_microusd, field=field)
    if not least_microusd <= amount_microusd <= most_microusd:
        raise AmountInvalid(
            f"{field} must be from {format_usd(least_microusd)} to {format_usd(most_microusd)}, "
            f"and is {format_usd(amount_microusd)}.",
            field=field,
        )
    whole_cents(amount_microusd, field=field)


def _check_whole(amount_microusd: int, *, field: str) -> None:
    if isinstance(amount_microusd, bool) or not isinstance(amount_microusd, int):
        raise AmountInvalid(f"{field} must be an integer of micro-USD.", field=field)
