"""Operators have an event handled anew: one that failed, was given up, or is waiting."""

from datetime import datetime

from django.db import transaction

from accounts.models import User
from billing.models import StripeEvent
from billing.services import audit_note, operator_check, reason_checked
from billing.webhooks.handling import event_handle


def event_replay(*, event_pk: int, operator: User, reason: str, now: datetime) -> bool:
    """Handle it again, now. False for one that has taken effect: that stays. Raises NotAnOperator, ReasonInvalid."""
    operator_check(operator)
    why = reason_checked(reason)
    with transaction.atomic():
        event = StripeEvent.objects.select_for_update().get(pk=event_pk)
        reset = (
            StripeEvent.objects.filter(pk=event_pk)
            .exclude(state=StripeEvent.State.HANDLED)
            .update(state=StripeEvent.State.RECEIVED, tries=0, next_try_at=now, note="")
        )
        if reset:
            audit_note(
                operator=operator,
                action="event_replay",
                subject=f"event:{event.event_id}",
                reason=why,
                before={"state": event.state, "note": event.note},
                after={"state": StripeEvent.State.RECEIVED},
            )
    if reset:
        event_handle(event_pk=event_pk, now=now)
    return bool(reset)
