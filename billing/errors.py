"""What the ledger refuses; in each case no money has moved.

BillingError
├── AmountInvalid          zero, negative, over the maximum, or not an integer
├── InsufficientFunds      an account would be overdrawn; says by how much
├── KeyInvalid             an idempotency key or a reference that is empty or too long
├── IdempotencyConflict    the key was used before, for something else
├── HoldNotFound           no hold has that reference
├── HoldReleased           a new charge to a hold whose rest has gone back
└── NotAnOperator          a grant by somebody who may not
"""

from common.errors import NightshiftError
from common.money import format_usd


class BillingError(NightshiftError):
    code = "billing_error"


class AmountInvalid(BillingError):
    code = "amount_invalid"


class InsufficientFunds(BillingError):
    """`missing_microusd` more in the account would have been enough."""

    code = "insufficient_funds"

    def __init__(self, *, place: str, missing_microusd: int, field: str | None = "amount_microusd") -> None:
        super().__init__(
            f"{format_usd(missing_microusd)} is missing in the {place}: add that much, or ask for less.",
            field=field,
        )
        self.missing_microusd = missing_microusd


class KeyInvalid(BillingError):
    code = "idempotency_key_invalid"


class IdempotencyConflict(BillingError):
    code = "idempotency_conflict"

    def __init__(self, key: str) -> None:
        super().__init__(
            f"The key {key!r} has already been used for something else: use a new key for a new transfer.",
            field="idempotency_key",
        )


class HoldNotFound(BillingError):
    code = "hold_not_found"

    def __init__(self, reference: str) -> None:
        super().__init__(f"There is no hold {reference!r}: open one first.", field="reference")


class HoldReleased(BillingError):
    code = "hold_released"

    def __init__(self, reference: str) -> None:
        super().__init__(
            f"The hold {reference!r} has been released: open a new hold to charge to.", field="reference"
        )


class NotAnOperator(BillingError):
    code = "not_an_operator"
