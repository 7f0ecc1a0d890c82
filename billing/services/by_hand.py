"""What operators do by hand with money that is stuck, each time for a reason that is written in the audit log.

Nothing is moved here: what was given up becomes due again, and is seen through under the same key as before.
"""

import uuid
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Model, Q, QuerySet

from accounts.models import User
from billing.errors import PayoutNotFound
from billing.models import Payout, Refund, StripeEvent, TopUp
from billing.services.audit import audit_note, operator_check, reason_checked
from billing.services.payouts import payout_bank_retry

# What nobody looks at any more, though it is not over.
GIVEN_UP: dict[type[Model], Q] = {
    Payout: Q(
        state__in=(Payout.State.DEBITED, Payout.State.TRANSFERRED), bank_payout_id="", next_try_at=None
    ),
    Refund: Q(state=Refund.State.DEBITED, next_try_at=None),
    StripeEvent: Q(state=StripeEvent.State.FAILED, next_try_at=None),
    TopUp: Q(state=TopUp.State.CREATED, automatic=True, next_try_at=None),
}


def payout_look_again(*, payout_id: uuid.UUID, operator: User, reason: str, now: datetime) -> bool:
    """Have a payout seen through to which Stripe never answered. False unless it was given up.

    Raises NotAnOperator, ReasonInvalid; so do the others.
    """
    given_up = Payout.objects.filter(GIVEN_UP[Payout], pk=payout_id)
    owner = User.objects.filter(payouts=payout_id)
    return _look_again(given_up, f"payout:{payout_id}", owner, operator, reason, now)


def refund_look_again(*, refund_id: uuid.UUID, operator: User, reason: str, now: datetime) -> bool:
    """The same for a refund."""
    given_up = Refund.objects.filter(GIVEN_UP[Refund], pk=refund_id)
    buyer = User.objects.filter(top_ups__refunds=refund_id)
    return _look_again(given_up, f"refund:{refund_id}", buyer, operator, reason, now)


def top_up_look_again(*, top_up_id: uuid.UUID, operator: User, reason: str, now: datetime) -> bool:
    """The same for an automatic top-up. Any other is asked for again by its buyer."""
    given_up = TopUp.objects.filter(GIVEN_UP[TopUp], pk=top_up_id)
    buyer = User.objects.filter(top_ups=top_up_id)
    return _look_again(given_up, f"top_up:{top_up_id}", buyer, operator, reason, now)


@transaction.atomic
def payout_send_again(*, payout_id: uuid.UUID, operator: User, reason: str, now: datetime) -> bool:
    """Send a payout to the bank again that the bank had refused. False unless it had. Raises PayoutNotFound too."""
    operator_check(operator)
    why = reason_checked(reason)
    payout = Payout.objects.select_related("user").filter(pk=payout_id).first()
    if payout is None:
        raise PayoutNotFound("There is no such payout.")
    if not payout_bank_retry(payout_id=payout_id, now=now):
        return False
    audit_note(
        operator=operator,
        action="payout_send_again",
        user=payout.user,
        subject=f"payout:{payout_id}",
        reason=why,
        before={"state": payout.state, "because": payout.because},
        after={"state": Payout.State.TRANSFERRED, "bank_attempt": payout.bank_attempt + 1},
    )
    return True


@transaction.atomic
def _look_again(
    rows: QuerySet[Any], subject: str, whose: QuerySet[User], operator: User, reason: str, now: datetime
) -> bool:
    operator_check(operator)
    why = reason_checked(reason)
    state = rows.values_list("state", "tries").first()
    if state is None or not rows.update(next_try_at=now, tries=0):
        return False
    audit_note(
        operator=operator,
        action=f"{subject.partition(':')[0]}_look_again",
        user=whose.first(),
        subject=subject,
        reason=why,
        before={"state": state[0], "tries": state[1], "next_try_at": None},
        after={"state": state[0], "tries": 0, "next_try_at": now.isoformat()},
    )
    return True
