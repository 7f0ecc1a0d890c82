"""What Stripe says of an owner's account, in words that tell the owner what to do.

The status is that of `configuration.recipient.capabilities.stripe_balance.stripe_transfers` of an account of
Stripe's Accounts v2, and the code is the first of its `status_details`. `unopened` and `closed` are ours.
"""

READY = "active"

_BY_CODE = {
    "requirements_past_due": "Stripe needs something more from you: continue the set-up there.",
    "requirements_pending_verification": "Stripe is checking what you gave; that takes a day or two.",
    "determining_status": "Stripe is looking at your account; that takes a few minutes.",
    "unsupported_country": "Stripe does not pay out in your country. Your balance is kept for you.",
    "unsupported_entity_type": "Stripe does not pay out to this kind of company. Your balance is kept for you.",
    "unsupported_business": "Stripe does not pay out to this kind of business. Your balance is kept for you.",
    "restricted_other": "Stripe has restricted your account: ask Stripe's support why. Your balance is kept for you.",
}
_BY_STATUS = {
    READY: "You can be paid out.",
    "unopened": "Continue the set-up at Stripe, so that you can be paid.",
    "pending": "Stripe is checking your account; that takes a day or two.",
    "restricted": "Stripe needs something more from you: continue the set-up there.",
    "rejected": "Stripe has rejected your account: ask Stripe's support why. Your balance is kept for you.",
    "unsupported": "Stripe cannot pay out to you. Your balance is kept for you.",
    "closed": "Your account at Stripe is closed: open a new one. Your balance is kept for you.",
}


def in_words(status: str, code: str = "") -> str:
    """One sentence for the owner."""
    if status == READY:
        return _BY_STATUS[READY]
    return _BY_CODE.get(code) or _BY_STATUS.get(status, _BY_STATUS["pending"])


# Why Stripe refuses a transfer for good, by its error code.
_REFUSALS = {
    "balance_insufficient": (
        "Nightshift's own balance at Stripe did not cover this payout. An operator can see it; ask again tomorrow."
    ),
    "account_closed": "Your account at Stripe is closed: open a new one, then ask again.",
    "account_invalid": "Your account at Stripe is closed or no longer linked: open a new one, then ask again.",
    "transfers_not_allowed": "Stripe does not let your account be paid: see its state below, then ask again.",
    "insufficient_capabilities_for_transfer": (
        "Your account at Stripe lacks what it needs to be paid: continue the set-up there, then ask again."
    ),
}


def refusal_in_words(stripe_code: str) -> str:
    """Why a payout came back; it is in the balance again."""
    known = _REFUSALS.get(stripe_code)
    return (
        known or f"Stripe refused this payout ({stripe_code or 'it gave no reason'}); an operator can see it."
    )
