"""Everything that moves money, by what it is about. Callers import from here; each module says what it promises."""

from billing.domain.entries import Charge
from billing.services.adjustments import (
    adjustable_check,
    adjustment_approve,
    adjustment_create,
    adjustment_decline,
)
from billing.services.audit import audit_note, operator_check, reason_checked
from billing.services.auto_top_up_terms import auto_top_up_set, auto_top_up_stop
from billing.services.by_hand import (
    GIVEN_UP,
    payout_look_again,
    payout_send_again,
    refund_look_again,
    top_up_look_again,
)
from billing.services.ledger import grant_post, hold_charge, hold_open, hold_release
from billing.services.notices import notice_write
from billing.services.owner_hooks import owner_delivery_replay, owner_hook_create, owner_hook_delete
from billing.services.payout_accounts import (
    onboarding_link,
    payout_account_open,
    payout_account_sync,
    payout_account_weekly,
)
from billing.services.payout_steps import payout_advance
from billing.services.payouts import payout_bank_retry, payout_freeze, payout_request, payout_unfreeze
from billing.services.rates import fee_set, rate_set
from billing.services.refunds import refund_create
from billing.services.standing import (
    payouts_freeze,
    payouts_unfreeze,
    wallet_check,
    wallet_freeze,
    wallet_freeze_by_hand,
    wallet_unfreeze,
)
from billing.services.top_ups import top_up_create
from billing.services.unmatched import (
    unmatched_adjust,
    unmatched_ignore,
    unmatched_note,
    unmatched_pair,
)

__all__ = [
    "GIVEN_UP",
    "Charge",
    "adjustable_check",
    "adjustment_approve",
    "adjustment_create",
    "adjustment_decline",
    "audit_note",
    "auto_top_up_set",
    "auto_top_up_stop",
    "fee_set",
    "grant_post",
    "hold_charge",
    "hold_open",
    "hold_release",
    "notice_write",
    "onboarding_link",
    "operator_check",
    "owner_delivery_replay",
    "owner_hook_create",
    "owner_hook_delete",
    "payout_account_open",
    "payout_account_sync",
    "payout_account_weekly",
    "payout_advance",
    "payout_bank_retry",
    "payout_freeze",
    "payout_look_again",
    "payout_request",
    "payout_send_again",
    "payout_unfreeze",
    "payouts_freeze",
    "payouts_unfreeze",
    "rate_set",
    "reason_checked",
    "refund_create",
    "refund_look_again",
    "top_up_create",
    "top_up_look_again",
    "unmatched_adjust",
    "unmatched_ignore",
    "unmatched_note",
    "unmatched_pair",
    "wallet_check",
    "wallet_freeze",
    "wallet_freeze_by_hand",
    "wallet_unfreeze",
]
