"""What the wallet's page shows: balances, what is set aside for which job, and both statements in words."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from accounts.models import User
from billing.models import Account, Transfer
from billing.selectors import (
    OpenHold,
    StatementLine,
    earnings_balance,
    open_holds,
    statement,
    wallet_balance,
    wallet_frozen_because,
)
from marketplace.models import Invoice, Job
from marketplace.selectors import invoices_of, jobs_of

LINES = 30  # of each statement; the API has more
INVOICES = 5
_WORDS = {
    Transfer.Reason.GRANT: "Credit granted by the operator",
    Transfer.Reason.ADJUSTMENT: "Corrected by the operator",
    Transfer.Reason.HOLD: "Set aside for a job",
    Transfer.Reason.RELEASE: "Returned from a job",
    Transfer.Reason.CHARGE: "Results accepted",
    Transfer.Reason.TOP_UP: "Paid in by card",
    Transfer.Reason.REFUND: "Refund to the card",
    Transfer.Reason.REFUND_RETURNED: "Refund that came back",
    Transfer.Reason.CHARGEBACK: "Taken back by the card's bank",
    Transfer.Reason.CHARGEBACK_RETURNED: "Given back by the card's bank",
    Transfer.Reason.PAYOUT: "Paid out",
    Transfer.Reason.PAYOUT_RETURNED: "Payout that came back",
}


@dataclass(frozen=True, slots=True)
class HoldView:
    hold: OpenHold
    job: Job


@dataclass(frozen=True, slots=True)
class LineView:
    created_at: datetime
    words: str
    memo: str
    amount_microusd: int


@dataclass(frozen=True, slots=True)
class WalletView:
    frozen_because: str  # a sentence, or nothing
    balance_microusd: int
    held_microusd: int
    earnings_microusd: int
    holds: tuple[HoldView, ...]
    lines: tuple[LineView, ...]
    earnings_lines: tuple[LineView, ...]
    invoices: tuple[Invoice, ...]  # the newest


def wallet_view(user: User) -> WalletView:
    holds = open_holds(user)
    return WalletView(
        frozen_because=wallet_frozen_because(user),
        balance_microusd=wallet_balance(user),
        held_microusd=sum(hold.left_microusd for hold in holds),
        earnings_microusd=earnings_balance(user),
        holds=_with_jobs(user, holds),
        lines=_lines(statement(user, Account.Kind.WALLET, lines=LINES)),
        earnings_lines=_lines(statement(user, Account.Kind.EARNINGS, lines=LINES)),
        invoices=tuple(invoices_of(user)[:INVOICES]),
    )


def _with_jobs(user: User, holds: Sequence[OpenHold]) -> tuple[HoldView, ...]:
    running = {job.reference: job for job in jobs_of(user).filter(state=Job.State.RUNNING)}
    return tuple(HoldView(hold, running[hold.reference]) for hold in holds if hold.reference in running)


def _lines(lines: Sequence[StatementLine]) -> tuple[LineView, ...]:
    return tuple(
        LineView(line.created_at, _WORDS[Transfer.Reason(line.reason)], line.memo, line.amount_microusd)
        for line in lines
    )
