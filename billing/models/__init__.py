"""The books (`ledger`), earnings, prices (`rates`), money in (`pay_in`) and out (`pay_out`), Stripe, operators."""

from billing.models.audit import OperatorAction
from billing.models.auto_top_up import AutoTopUp
from billing.models.corrections import Adjustment, Unmatched
from billing.models.earnings import Earning
from billing.models.ledger import Account, Hold, Posting, Transfer
from billing.models.news import BillingNews
from billing.models.notices import Notice
from billing.models.owner_hooks import OwnerDelivery, OwnerHook
from billing.models.pay_in import Dispute, Refund, TopUp
from billing.models.pay_out import Payout, PayoutAccount, PayoutStep
from billing.models.rates import Fee, Rate
from billing.models.standing import Standing
from billing.models.stripe import StripeCall, StripeEvent

__all__ = [
    "Account",
    "Adjustment",
    "AutoTopUp",
    "BillingNews",
    "Dispute",
    "Earning",
    "Fee",
    "Hold",
    "Notice",
    "OperatorAction",
    "OwnerDelivery",
    "OwnerHook",
    "Payout",
    "PayoutAccount",
    "PayoutStep",
    "Posting",
    "Rate",
    "Refund",
    "Standing",
    "StripeCall",
    "StripeEvent",
    "TopUp",
    "Transfer",
    "Unmatched",
]
