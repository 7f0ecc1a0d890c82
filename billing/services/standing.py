"""Freezes of a person's money, and the audit log of whoever set or lifted them."""

from django.db import transaction

from accounts.models import User
from billing.errors import NotAnOperator, PayoutsFrozen, WalletFrozen
from billing.models import BillingNews, OperatorAction, Standing

BECAUSE_MAX_CHARS = 200


def wallet_check(user: User) -> None:
    """Raise WalletFrozen, with the reason, if nothing may leave this person's wallet."""
    because = _because(user, "wallet_frozen_because")
    if because:
        raise WalletFrozen(f"Your wallet is frozen: {because} Write to the operator of this site.")


def payouts_check(user: User) -> None:
    """Raise PayoutsFrozen, with the reason, if this person may not be paid out."""
    because = _because(user, "payouts_frozen_because")
    if because:
        raise PayoutsFrozen(f"Your payouts are frozen: {because} Write to the operator of this site.")


def operator_check(operator: User) -> None:
    """Raise NotAnOperator unless this is active staff."""
    if not (operator.is_active and operator.is_staff):
        raise NotAnOperator(
            "Only an operator can do this; `manage.py createsuperuser` makes one.", field="operator"
        )


@transaction.atomic
def wallet_freeze(*, user: User, because: str) -> None:
    """Let nothing leave the wallet, and tell the apps above, once. A wallet that is frozen keeps its first reason."""
    Standing.objects.get_or_create(user=user)
    frozen = Standing.objects.filter(user=user, wallet_frozen_because="").update(
        wallet_frozen_because=because[:BECAUSE_MAX_CHARS]
    )
    if frozen:
        BillingNews.publish("wallet_frozen", user_id=user.pk)


@transaction.atomic
def wallet_unfreeze(*, user: User, operator: User, reason: str) -> None:
    """Lift a wallet's freeze. Raises NotAnOperator."""
    operator_check(operator)
    lifted = (
        Standing.objects.filter(user=user).exclude(wallet_frozen_because="").update(wallet_frozen_because="")
    )
    if lifted:
        operator_action_log(operator=operator, action="wallet_unfreeze", user=user, reason=reason)
        BillingNews.publish("wallet_unfrozen", user_id=user.pk)


@transaction.atomic
def payouts_freeze(*, user: User, operator: User, reason: str) -> None:
    """Take no new payout of this owner, and send none that has not left. Raises NotAnOperator."""
    operator_check(operator)
    Standing.objects.update_or_create(
        user=user, defaults={"payouts_frozen_because": reason[:BECAUSE_MAX_CHARS]}
    )
    operator_action_log(operator=operator, action="payouts_freeze", user=user, reason=reason)


@transaction.atomic
def payouts_unfreeze(*, user: User, operator: User, reason: str) -> None:
    """Let this owner be paid again. Raises NotAnOperator."""
    operator_check(operator)
    lifted = (
        Standing.objects.filter(user=user)
        .exclude(payouts_frozen_because="")
        .update(payouts_frozen_because="")
    )
    if lifted:
        operator_action_log(operator=operator, action="payouts_unfreeze", user=user, reason=reason)


def operator_action_log(
    *, operator: User, action: str, reason: str, user: User | None = None, subject: str = ""
) -> None:
    """Write one line of the audit log, in the transaction of what it is about."""
    OperatorAction.objects.create(
        operator=operator, action=action, user=user, subject=subject, reason=reason[:BECAUSE_MAX_CHARS]
    )


def _because(user: User, field: str) -> str:
    return Standing.objects.filter(user=user).values_list(field, flat=True).first() or ""
