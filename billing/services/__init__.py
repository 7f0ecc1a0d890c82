"""Everything that moves money, by what it is about. Callers import from here; each module says what it promises."""

from billing.domain.entries import Charge
from billing.services.ledger import grant_post, hold_charge, hold_open, hold_release
from billing.services.owner_hooks import owner_delivery_replay, owner_hook_create, owner_hook_delete
from billing.services.payout_accounts import (
    onboarding_link,
    payout_account_open,
    payout_account_sync,
    payout_account_weekly,
)
from billing.services.payout_steps import payout_advance
from billing.services.payouts import payout_bank_retry, payout_request
from billing.services.refunds import refund_create
from billing.services.standing import payouts_freeze, payouts_unfreeze, wallet_freeze, wallet_unfreeze
from billing.services.top_ups import top_up_create

__all__ = [
    "Charge",
    "grant_post",
    "hold_charge",
    "hold_open",
    "hold_release",
    "onboarding_link",
    "owner_delivery_replay",
    "owner_hook_create",
    "owner_hook_delete",
    "payout_account_open",
    "payout_account_sync",
    "payout_account_weekly",
    "payout_advance",
    "payout_bank_retry",
    "payout_request",
    "payouts_freeze",
    "payouts_unfreeze",
    "refund_create",
    "top_up_create",
    "wallet_freeze",
    "wallet_unfreeze",
]
