"""Which amounts of money may move at all."""

from billing.errors import AmountInvalid

# A thousand million USD: far above any true transfer, and thousands of them still fit into 64 bits.
MAX_AMOUNT_MICROUSD = 10**15


def check_amount(amount_microusd: int, *, field: str = "amount_microusd") -> None:
    """Raise AmountInvalid, naming `field`, unless this is a whole, positive and sane amount."""
    if isinstance(amount_microusd, bool) or not isinstance(amount_microusd, int):
        raise AmountInvalid(f"{field} must be an integer of micro-USD.", field=field)
    if not 0 < amount_microusd <= MAX_AMOUNT_MICROUSD:
        raise AmountInvalid(
            f"{field} must be from 1 to {MAX_AMOUNT_MICROUSD} micro-USD, and is {amount_microusd}.",
            field=field,
        )
