"""What billing refuses; in each case no money has moved.

BillingError
├── AmountInvalid             zero, negative, out of bounds, not an integer or not whole cents
├── InsufficientFunds         an account would be overdrawn; says by how much
├── KeyInvalid                an idempotency key or a reference that is empty or too long
├── IdempotencyConflict       the key was used before, for something else
├── HoldNotFound              no hold has that reference
├── HoldReleased              a new charge to a hold whose rest has gone back
├── NotAnOperator             a grant, a freeze or a replay by somebody who may not
├── RateInvalid               a price that cannot be, or that would begin in the past
├── EstimateInvalid           a class or hours that nothing can be said of
├── ReasonInvalid             an operator's act without a reason, or with too long a one
├── AdjustmentInvalid         an account that no adjustment may touch, or twice the same
├── AdjustmentNotFound        none that waits has this id
├── SecondOperatorNeeded      whoever asked for an adjustment cannot approve it
├── UnmatchedInvalid          resolved already, or two that do not make a pair
├── WalletFrozen              a chargeback is open, or an operator has said so
├── PayInError
│   ├── ConsentMissing        a card is charged by itself only after a clear yes
│   ├── TopUpNotFound
│   └── TopUpNotRefundable    not paid, disputed, or refunded before
├── PayOutError
│   ├── CountryUnsupported    Stripe does not pay out there
│   ├── CurrencyUnknown       we keep USD alone
│   ├── EarningsImmature      earned, and not yet past the hold-back
│   ├── HookInvalid           an owner's address that nothing can be sent to
│   ├── HookLimit             an owner has enough of them
│   ├── HookNotFound          no such hook, or no such delivery
│   ├── PayoutAccountMissing  the owner has not opened one
│   ├── PayoutAccountRefused  Stripe opens none: the site's own account lacks something, or the country
│   ├── PayoutAccountUnready  it cannot be paid to; says why and what to do
│   ├── PayoutNotFound
│   ├── PayoutGone            on its way to the bank, or over: too late to freeze it
│   └── PayoutsFrozen         an operator has said so
├── StripeError
│   ├── StripeNotConfigured   this site has no key
│   ├── StripeRefused         Stripe has said no to this request for good
│   └── StripeUnavailable     no answer, or none that settles it; to be asked again under the same key
└── WebhookError              something that is no event of Stripe's
    ├── WebhookTooLarge
    ├── WebhookUnreadable
    └── WebhookUnsigned       a wrong signature, or one that is too old
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


class RateInvalid(BillingError):
    code = "rate_invalid"


class EstimateInvalid(BillingError):
    code = "estimate_invalid"


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


class ReasonInvalid(BillingError):
    code = "reason_invalid"


class AdjustmentInvalid(BillingError):
    code = "adjustment_invalid"


class AdjustmentNotFound(BillingError):
    code = "adjustment_not_found"


class SecondOperatorNeeded(BillingError):
    code = "second_operator_needed"


class UnmatchedInvalid(BillingError):
    code = "unmatched_invalid"


class WalletFrozen(BillingError):
    code = "wallet_frozen"


class PayInError(BillingError):
    code = "pay_in_error"


class ConsentMissing(PayInError):
    code = "consent_missing"


class TopUpNotFound(PayInError):
    code = "top_up_not_found"


class TopUpNotRefundable(PayInError):
    code = "top_up_not_refundable"


class PayOutError(BillingError):
    code = "pay_out_error"


class CountryUnsupported(PayOutError):
    code = "country_unsupported"


class CurrencyUnknown(PayOutError):
    code = "currency_unknown"


class EarningsImmature(PayOutError):
    code = "earnings_immature"


class HookInvalid(PayOutError):
    code = "hook_invalid"


class HookLimit(PayOutError):
    code = "hook_limit"


class HookNotFound(PayOutError):
    code = "hook_not_found"


class PayoutAccountMissing(PayOutError):
    code = "payout_account_missing"


class PayoutAccountRefused(PayOutError):
    code = "payout_account_refused"

    def __init__(self, stripe_code: str) -> None:
        super().__init__(
            f"Stripe does not open an account for you here ({stripe_code or 'it gave no reason'}). Your balance is "
            "kept for you: write to the operator of this site, then try again."
        )


class PayoutAccountUnready(PayOutError):
    code = "payout_account_unready"


class PayoutNotFound(PayOutError):
    code = "payout_not_found"


class PayoutGone(PayOutError):
    code = "payout_gone"


class PayoutsFrozen(PayOutError):
    code = "payouts_frozen"


class StripeError(BillingError):
    code = "stripe_error"


class StripeNotConfigured(StripeError):
    code = "stripe_not_configured"

    def __init__(self) -> None:
        super().__init__(
            "This site takes and pays no real money yet: its operator must set NIGHTSHIFT_STRIPE_SECRET_KEY."
        )


class StripeRefused(StripeError):
    """`stripe_code` is Stripe's own; its words stay in the log, they are meant for us."""

    code = "stripe_refused"

    def __init__(self, stripe_code: str, *, decline_code: str = "", about: str = "") -> None:
        super().__init__(f"Stripe has refused this ({stripe_code or 'no code given'}). Nothing was moved.")
        self.stripe_code = stripe_code
        self.decline_code = decline_code  # of a card's bank
        self.about = about  # the payment that was refused


class StripeUnavailable(StripeError):
    code = "stripe_unavailable"

    def __init__(self) -> None:
        super().__init__("Stripe does not answer just now: try again in a minute, nothing is done twice.")


class WebhookError(BillingError):
    code = "webhook_error"


class WebhookTooLarge(WebhookError):
    code = "webhook_too_large"


class WebhookUnreadable(WebhookError):
    code = "webhook_unreadable"


class WebhookUnsigned(WebhookError):
    code = "webhook_unsigned"
