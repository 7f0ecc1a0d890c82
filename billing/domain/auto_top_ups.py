"""When a wallet is topped up by itself, and what a decline means. Pure."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

PAUSES = (timedelta(hours=4), timedelta(days=1))  # after the first and second decline in a row
# Trying again cannot help: the card is gone, or its bank has said never again.
FINAL = frozenset(
    {
        "expired_card",
        "incorrect_number",
        "invalid_account",
        "lost_card",
        "pickup_card",
        "restricted_card",
        "revocation_of_all_authorizations",
        "revocation_of_authorization",
        "stolen_card",
        "stop_payment_order",
    }
)


@dataclass(frozen=True, slots=True)
class Terms:
    threshold_microusd: int
    amount_microusd: int
    monthly_cap_microusd: int


@dataclass(frozen=True, slots=True)
class Verdict:
    """Top up now; or look again at `again_at`, never by itself if that is None. `note` is for the buyer."""

    tops_up: bool
    again_at: datetime | None = None
    note: str = ""


def verdict(terms: Terms, *, balance_microusd: int, spent_microusd: int, now: datetime) -> Verdict:
    """Whether a wallet with this balance, topped up by so much in this month, is topped up now."""
    if balance_microusd >= terms.threshold_microusd:
        return Verdict(tops_up=False)
    if spent_microusd + terms.amount_microusd > terms.monthly_cap_microusd:
        return Verdict(
            tops_up=False,
            again_at=month_after(now),
            note="This month's cap is reached; it goes on next month, or when you raise the cap.",
        )
    return Verdict(tops_up=True)


def after_decline(*, declines: int, code: str, now: datetime) -> tuple[datetime | None, str]:
    """After so many declines in a row, the last for `code`: when to try again; or None, and why it is off."""
    if code in FINAL:
        return None, "Your card can no longer be charged: save another card and switch it on again."
    if declines > len(PAUSES):
        return None, f"Your card was declined {declines} times in a row: check it, then switch it on again."
    return now + PAUSES[declines - 1], "Your card was declined; it is tried again later."


def month_of(now: datetime) -> datetime:
    """When this month began, in UTC."""
    return now.astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)


def month_after(now: datetime) -> datetime:
    return month_of(month_of(now) + timedelta(days=32))
