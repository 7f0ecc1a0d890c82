"""Reads of money: the books (`ledger`), owners' earnings (`earnings`), and what goes in and out (`payments`)."""

from billing.selectors.earnings import (
    EarningsBalances,
    available_microusd,
    earnings_balances,
    earnings_by_day,
)
from billing.selectors.ledger import (
    STATEMENT_LINES,
    Difference,
    OpenHold,
    StatementLine,
    earnings_balance,
    earnings_by_charge_keys,
    fees_balance,
    hold_remaining,
    ledger_differences,
    open_holds,
    statement,
    wallet_balance,
)
from billing.selectors.payments import (
    PayoutEstimate,
    payout_account_of,
    payout_estimate,
    payout_of,
    payouts_of,
    refundable_microusd,
    top_up_of,
    top_ups_of,
)

__all__ = [
    "STATEMENT_LINES",
    "Difference",
    "EarningsBalances",
    "OpenHold",
    "PayoutEstimate",
    "StatementLine",
    "available_microusd",
    "earnings_balance",
    "earnings_balances",
    "earnings_by_charge_keys",
    "earnings_by_day",
    "fees_balance",
    "hold_remaining",
    "ledger_differences",
    "open_holds",
    "payout_account_of",
    "payout_estimate",
    "payout_of",
    "payouts_of",
    "refundable_microusd",
    "statement",
    "top_up_of",
    "top_ups_of",
    "wallet_balance",
]
