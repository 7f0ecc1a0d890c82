"""What reconciliation could not pair: kept as rows, and resolved by operators in one of three ways."""

from collections.abc import Sequence
from datetime import datetime

from django.db import transaction
from django.db.models import Q

from accounts.models import User
from billing.domain.stripe_entries import STRIPE_KEY
from billing.errors import UnmatchedInvalid
from billing.models import Adjustment, Unmatched
from billing.reconciliation import Mismatch
from billing.services.adjustments import adjustment_create
from billing.services.audit import audit_note, operator_check, reason_checked

State = Unmatched.State


@transaction.atomic
def unmatched_note(*, mismatches: Sequence[Mismatch], since: datetime, now: datetime) -> list[Unmatched]:
    """Keep what differs now; what moved since then, was listed and agrees by now is healed. Returns the open ones.

    One that an operator has resolved stays so for as long as both sides say what they said then.
    """
    for mismatch in mismatches:
        row, made = Unmatched.objects.select_for_update().get_or_create(
            stripe_id=mismatch.stripe_id,
            ledger_key=mismatch.ledger_key,
            defaults={
                **_sides(mismatch),
                "kind": mismatch.kind,
                "moved_at": mismatch.at,
                "found_at": now,
                "seen_at": now,
            },
        )
        changed = {name: getattr(row, name) for name in _sides(mismatch)} != _sides(mismatch)
        if changed or row.state == State.HEALED:
            fields = {"state": State.OPEN, "reason": "", "resolved_by": None, "paired_with": None}
            Unmatched.objects.filter(pk=row.pk).update(**_sides(mismatch), **fields)
        if not made:
            Unmatched.objects.filter(pk=row.pk).update(seen_at=now)
    Unmatched.objects.filter(state=State.OPEN, moved_at__gte=since, adjustment=None).exclude(
        seen_at=now
    ).update(state=State.HEALED)
    return list(Unmatched.objects.filter(state=State.OPEN))


@transaction.atomic
def unmatched_pair(*, one_id: int, other_id: int, operator: User, reason: str) -> None:
    """The same money under two names: what Stripe alone has is what the books alone have, in the same amount."""
    operator_check(operator)
    one, other = _open(one_id), _open(other_id)
    stripes, ours = (one, other) if one.stripe_microusd is not None else (other, one)
    fits = stripes.ledger_microusd is None and ours.stripe_microusd is None
    if one.pk == other.pk or not fits or stripes.stripe_microusd != ours.ledger_microusd:
        raise UnmatchedInvalid(
            "A pair is one movement that only Stripe has and one that only the books have, of the same amount."
        )
    for row, pair in ((stripes, ours), (ours, stripes)):
        _resolve(row, State.PAIRED, operator, reason, paired_with=pair)


@transaction.atomic
def unmatched_ignore(*, unmatched_id: int, operator: User, reason: str) -> None:
    """It is right as it is. Nothing moves."""
    operator_check(operator)
    _resolve(_open(unmatched_id), State.IGNORED, operator, reason)


@transaction.atomic
def unmatched_adjust(
    *, unmatched_id: int, account_key: str, operator: User, reason: str, now: datetime
) -> Adjustment:
    """Correct the books to what Stripe says: the difference comes from or goes to `account_key`.

    It is resolved when the adjustment is posted, which may need a second operator. Raises what
    `adjustment_create` raises, and UnmatchedInvalid.
    """
    operator_check(operator)
    row = _open(unmatched_id)
    gained = row.difference_microusd
    if not gained:
        raise UnmatchedInvalid("Both sides say the same: there is nothing to adjust.")
    adjustment = adjustment_create(
        operator=operator,
        from_key=STRIPE_KEY if gained > 0 else account_key,
        to_key=account_key if gained > 0 else STRIPE_KEY,
        amount_microusd=abs(gained),
        reason=reason,
        now=now,
    )
    state = State.ADJUSTED if adjustment.state == Adjustment.State.POSTED else State.OPEN
    _resolve(row, state, operator, reason, adjustment=adjustment)
    return adjustment


def _open(unmatched_id: int) -> Unmatched:
    row = (
        Unmatched.objects.select_for_update()
        .filter(Q(adjustment=None), pk=unmatched_id, state=State.OPEN)
        .first()
    )
    if row is None:
        raise UnmatchedInvalid("It is resolved already, or its adjustment waits for a second operator.")
    return row


def _resolve(row: Unmatched, state: State, operator: User, reason: str, **fields: object) -> None:
    why = reason_checked(reason)
    Unmatched.objects.filter(pk=row.pk).update(state=state, reason=why, resolved_by=operator, **fields)
    audit_note(
        operator=operator,
        action=f"unmatched_{state if state != State.OPEN else 'adjust'}",
        subject=f"unmatched:{row.pk}",
        reason=why,
        before={"state": State.OPEN},
        after={"state": state, "stripe_id": row.stripe_id, "ledger_key": row.ledger_key},
    )


def _sides(mismatch: Mismatch) -> dict[str, int | None]:
    return {"stripe_microusd": mismatch.stripe_microusd, "ledger_microusd": mismatch.ledger_microusd}
