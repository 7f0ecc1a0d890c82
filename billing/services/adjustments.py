"""Adjustments: an operator corrects the books by a transfer of its own, for a reason; a second one approves much."""

import uuid
from datetime import datetime

from django.conf import settings
from django.db import transaction

from accounts.models import User
from billing.domain.amounts import check_amount
from billing.domain.entries import adjustable, adjustment_entry
from billing.errors import AdjustmentInvalid, AdjustmentNotFound, SecondOperatorNeeded
from billing.models import Adjustment, Unmatched
from billing.posting import entries_post
from billing.services.audit import audit_note, operator_check, reason_checked
from common.clock import utc_now

State = Adjustment.State


@transaction.atomic
def adjustment_create(
    *,
    operator: User,
    from_key: str,
    to_key: str,
    amount_microusd: int,
    reason: str,
    adjustment_id: uuid.UUID | None = None,
    now: datetime | None = None,
) -> Adjustment:
    """Move money between two accounts, or, above the limit, ask a second operator to. The same id asks once.

    Raises NotAnOperator, ReasonInvalid, AmountInvalid, AdjustmentInvalid, InsufficientFunds.
    """
    operator_check(operator)
    check_amount(amount_microusd)
    for field, key in (("from_key", from_key), ("to_key", to_key)):
        adjustable_check(key, field=field)
    if from_key == to_key:
        raise AdjustmentInvalid("to_key must be another account than from_key.", field="to_key")
    asked = {
        "from_key": from_key,
        "to_key": to_key,
        "amount_microusd": amount_microusd,
        "reason": reason_checked(reason),
        "operator": operator,
    }
    adjustment, made = Adjustment.objects.get_or_create(
        pk=adjustment_id or uuid.uuid4(), defaults={**asked, "created_at": now or utc_now()}
    )
    if not made and any(getattr(adjustment, field) != value for field, value in asked.items()):
        raise AdjustmentInvalid("This id was used for another adjustment: use a new one.", field="id")
    if made:
        waits = amount_microusd > settings.ADJUSTMENT_LIMIT_MICROUSD
        _note(adjustment, operator, "adjustment_ask" if waits else "adjustment_post", adjustment.reason)
        if not waits:
            _post(adjustment, approver=None, now=now or utc_now())
    adjustment.refresh_from_db()
    return adjustment


@transaction.atomic
def adjustment_approve(*, adjustment_id: uuid.UUID, operator: User, reason: str, now: datetime) -> Adjustment:
    """Post what another operator asked for. Raises NotAnOperator, SecondOperatorNeeded, AdjustmentNotFound,
    ReasonInvalid, InsufficientFunds.
    """
    operator_check(operator)
    adjustment = _waiting(adjustment_id)
    if adjustment.operator_id == operator.pk:
        raise SecondOperatorNeeded("Another operator must approve what you have asked for.", field="operator")
    _post(adjustment, approver=operator, now=now)
    _note(adjustment, operator, "adjustment_approve", reason)
    adjustment.refresh_from_db()
    return adjustment


@transaction.atomic
def adjustment_decline(*, adjustment_id: uuid.UUID, operator: User, reason: str, now: datetime) -> Adjustment:
    """Do not post it; whoever asked may take it back so. Raises NotAnOperator, AdjustmentNotFound, ReasonInvalid."""
    operator_check(operator)
    adjustment = _waiting(adjustment_id)
    Adjustment.objects.filter(pk=adjustment.pk).update(
        state=State.DECLINED, decided_by=operator, decided_at=now
    )
    # What it was to resolve is open again.
    Unmatched.objects.filter(adjustment=adjustment).update(adjustment=None)
    _note(adjustment, operator, "adjustment_decline", reason)
    adjustment.refresh_from_db()
    return adjustment


def adjustable_check(key: str, *, field: str) -> None:
    """Raise AdjustmentInvalid, naming `field`, unless adjustments may touch this account and its person exists."""
    kind, _, rest = key.partition(":")
    if not adjustable(key) or (
        kind in ("wallet", "earnings") and not User.objects.filter(pk=int(rest)).exists()
    ):
        raise AdjustmentInvalid(
            f"{field} must be wallet:<user id> or earnings:<user id> of somebody, fees, source:grants, "
            "source:stripe or source:chargebacks.",
            field=field,
        )


def _waiting(adjustment_id: uuid.UUID) -> Adjustment:
    adjustment = Adjustment.objects.select_for_update().filter(pk=adjustment_id, state=State.WAITING).first()
    if adjustment is None:
        raise AdjustmentNotFound("No adjustment with this id waits for approval.")
    return adjustment


def _post(adjustment: Adjustment, *, approver: User | None, now: datetime) -> None:
    entry = adjustment_entry(
        adjustment_id=adjustment.pk,
        from_key=adjustment.from_key,
        to_key=adjustment.to_key,
        amount_microusd=adjustment.amount_microusd,
        operator_id=adjustment.operator_id,
        reason=adjustment.reason,
    )
    transfer = entries_post([entry])[0]
    Adjustment.objects.filter(pk=adjustment.pk).update(
        state=State.POSTED, transfer=transfer, decided_by=approver, decided_at=now
    )
    Unmatched.objects.filter(adjustment=adjustment).update(state=Unmatched.State.ADJUSTED)


def _note(adjustment: Adjustment, operator: User, action: str, reason: str) -> None:
    kind, _, rest = adjustment.to_key.partition(":")
    owner = User.objects.filter(pk=int(rest)).first() if kind in ("wallet", "earnings") else None
    audit_note(
        operator=operator,
        action=action,
        user=owner,
        subject=f"adjustment:{adjustment.pk}",
        reason=reason,
        after={
            "from": adjustment.from_key,
            "to": adjustment.to_key,
            "amount_microusd": adjustment.amount_microusd,
        },
    )
