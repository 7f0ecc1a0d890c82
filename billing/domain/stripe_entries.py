"""Transfers that real money makes: what moves between which accounts when Stripe takes, keeps or gives it back.

`source:stripe` is the money that Stripe has of ours, with the sign turned; money that is debited but not known to
have left waits in an account of its own (`transit:payout:<id>`), so that no moment is without its place.
"""

from uuid import UUID

from billing.domain.entries import FEES_KEY, Entry, earnings_key, wallet_key

STRIPE_KEY = "source:stripe"
CHARGEBACKS_KEY = "source:chargebacks"


def payout_transit_key(payout_id: UUID) -> str:
    return f"transit:payout:{payout_id}"


def refund_transit_key(refund_id: UUID) -> str:
    return f"transit:refund:{refund_id}"


def top_up_entry(*, top_up_id: UUID, user_id: int, amount_microusd: int) -> Entry:
    lines = {STRIPE_KEY: -amount_microusd, wallet_key(user_id): amount_microusd}
    return _entry(f"top_up:{top_up_id}", "top_up", lines)


def refund_entry(*, refund_id: UUID, user_id: int, amount_microusd: int) -> Entry:
    lines = {wallet_key(user_id): -amount_microusd, refund_transit_key(refund_id): amount_microusd}
    return _entry(f"refund:{refund_id}", "refund", lines)


def refund_sent_entry(*, refund_id: UUID, amount_microusd: int) -> Entry:
    lines = {refund_transit_key(refund_id): -amount_microusd, STRIPE_KEY: amount_microusd}
    return _entry(f"refund_sent:{refund_id}", "refund_sent", lines)


def refund_returned_entry(*, refund_id: UUID, user_id: int, amount_microusd: int, was_sent: bool) -> Entry:
    """Back into the wallet: from Stripe if it had been sent, else from where it waited."""
    place = STRIPE_KEY if was_sent else refund_transit_key(refund_id)
    lines = {place: -amount_microusd, wallet_key(user_id): amount_microusd}
    return _entry(f"refund_returned:{refund_id}", "refund_returned", lines)


def chargeback_entry(
    *, dispute_id: str, user_id: int, amount_microusd: int, from_wallet_microusd: int
) -> Entry:
    """Stripe takes the whole; the wallet gives what it still has, the platform the rest."""
    lines = {
        STRIPE_KEY: amount_microusd,
        wallet_key(user_id): -from_wallet_microusd,
        CHARGEBACKS_KEY: from_wallet_microusd - amount_microusd,
    }
    return _entry(f"chargeback:{dispute_id}", "chargeback", lines)


def chargeback_returned_entry(
    *, dispute_id: str, user_id: int, amount_microusd: int, from_wallet_microusd: int
) -> Entry:
    lines = {
        STRIPE_KEY: -amount_microusd,
        wallet_key(user_id): from_wallet_microusd,
        CHARGEBACKS_KEY: amount_microusd - from_wallet_microusd,
    }
    return _entry(f"chargeback_returned:{dispute_id}", "chargeback_returned", lines)


def payout_entry(*, payout_id: UUID, user_id: int, amount_microusd: int) -> Entry:
    lines = {earnings_key(user_id): -amount_microusd, payout_transit_key(payout_id): amount_microusd}
    return _entry(f"payout:{payout_id}", "payout", lines)


def payout_sent_entry(*, payout_id: UUID, amount_microusd: int, fee_microusd: int) -> Entry:
    lines = {
        payout_transit_key(payout_id): -amount_microusd,
        STRIPE_KEY: amount_microusd - fee_microusd,
        FEES_KEY: fee_microusd,
    }
    return _entry(f"payout_sent:{payout_id}", "payout_sent", lines)


def payout_returned_entry(
    *, payout_id: UUID, user_id: int, amount_microusd: int, fee_microusd: int, was_sent: bool
) -> Entry:
    """Back into the earnings, whole: from where it waited, or, reversed, from Stripe and with the platform's fee."""
    lines = {earnings_key(user_id): amount_microusd}
    if was_sent:
        lines |= {STRIPE_KEY: fee_microusd - amount_microusd, FEES_KEY: -fee_microusd}
    else:
        lines |= {payout_transit_key(payout_id): -amount_microusd}
    return _entry(f"payout_returned:{payout_id}", "payout_returned", lines)


def _entry(key: str, reason: str, lines: dict[str, int]) -> Entry:
    moved = {place: amount for place, amount in lines.items() if amount}
    return Entry(idempotency_key=key, reason=reason, asked=key, lines=moved)
