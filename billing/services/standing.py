"""Freezes of a person's money; whoever sets or lifts one is written in the audit log."""

from django.db import transaction

from accounts.models import User
from accounts.services import user_lock
from billing.errors import PayoutsFrozen, WalletFrozen
from billing.models import BillingNews, Standing
from billing.services.audit import REASON_MAX_CHARS, audit_note, operator_check, reason_checked
from common.wake import SETTLER, wake_on_commit


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


@transaction.atomic
def wallet_freeze(*, user: User, because: str) -> bool:
    """Let nothing leave the wallet, and tell the apps above, once. A wallet that is frozen keeps its first reason."""
    user_lock(user)  # in turns with `hold_open`
    Standing.objects.get_or_create(user=user)
    frozen = Standing.objects.filter(user=user, wallet_frozen_because="").update(
        wallet_frozen_because=because[:REASON_MAX_CHARS]
    )
    if frozen:
        _tell("wallet_frozen", user)
    return bool(frozen)


@transaction.atomic
def wallet_thaw(*, user: User, because: str) -> bool:
    """Lift a freeze that was for this reason, which has gone; one for another reason stays."""
    thawed = Standing.objects.filter(user=user, wallet_frozen_because=because).update(
        wallet_frozen_because=""
    )
    if thawed:
        _tell("wallet_unfrozen", user)
    return bool(thawed)


@transaction.atomic
def wallet_freeze_by_hand(*, user: User, operator: User, reason: str) -> None:
    """As an operator. Raises NotAnOperator, ReasonInvalid."""
    operator_check(operator)
    if wallet_freeze(user=user, because=reason_checked(reason)):
        _note(operator, "wallet_freeze", user, reason, before="", after=reason)


@transaction.atomic
def wallet_unfreeze(*, user: User, operator: User, reason: str) -> None:
    """Lift a wallet's freeze. Raises NotAnOperator, ReasonInvalid."""
    operator_check(operator)
    because = _lift(user, "wallet_frozen_because")
    if because:
        _note(operator, "wallet_unfreeze", user, reason, before=because, after="")
        _tell("wallet_unfrozen", user)


@transaction.atomic
def payouts_freeze(*, user: User, operator: User, reason: str) -> None:
    """Take no new payout of this owner, and send none that has not left. Raises NotAnOperator, ReasonInvalid."""
    operator_check(operator)
    before = _because(user, "payouts_frozen_because")
    Standing.objects.update_or_create(user=user, defaults={"payouts_frozen_because": reason_checked(reason)})
    _note(operator, "payouts_freeze", user, reason, before=before, after=reason)


@transaction.atomic
def payouts_unfreeze(*, user: User, operator: User, reason: str) -> None:
    """Let this owner be paid again. Raises NotAnOperator, ReasonInvalid."""
    operator_check(operator)
    because = _lift(user, "payouts_frozen_because")
    if because:
        _note(operator, "payouts_unfreeze", user, reason, before=because, after="")


def _tell(kind: str, user: User) -> None:
    BillingNews.publish(kind, user_id=user.pk)
    wake_on_commit(SETTLER)


def _lift(user: User, field: str) -> str:
    """The reason of the freeze that this call has lifted; empty if there was none, or another was quicker."""
    because = _because(user, field)
    lifted = because and Standing.objects.filter(user=user, **{field: because}).update(**{field: ""})
    return because if lifted else ""


def _note(operator: User, action: str, user: User, reason: str, *, before: str, after: str) -> None:
    audit_note(
        operator=operator,
        action=action,
        user=user,
        reason=reason,
        before={"frozen_because": before},
        after={"frozen_because": after.strip()},
    )


def _because(user: User, field: str) -> str:
    return Standing.objects.filter(user=user).values_list(field, flat=True).first() or ""
