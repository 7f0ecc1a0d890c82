"""Payouts: asked for, and moved from state to state. `payout_steps` is what talks to Stripe in between.

Each move is one transaction: the state, its line in the payout's story, the news of it, and the money that goes with
it. It goes through only from a state that the table of transitions allows, so a move that is made twice is made once.
"""

import uuid
from datetime import datetime
from typing import Any

from django.db import transaction

from accounts.models import User
from billing.domain.amounts import check_amount_between, whole_cents
from billing.domain.capability import READY, in_words
from billing.domain.countries import payout_country
from billing.domain.entries import check_key, earnings_key
from billing.domain.payout_states import FREEZABLE, sources_of
from billing.domain.stripe_entries import payout_entry, payout_returned_entry, payout_sent_entry
from billing.errors import (
    EarningsImmature,
    IdempotencyConflict,
    PayoutAccountMissing,
    PayoutAccountUnready,
    PayoutGone,
    PayoutNotFound,
    PayoutsFrozen,
)
from billing.models import Payout, PayoutAccount, PayoutStep
from billing.payout_terms import payout_fee_microusd
from billing.posting import accounts_lock, entries_post
from billing.selectors import available_microusd
from billing.services.audit import audit_note, operator_check, reason_checked
from billing.services.owner_hooks import owner_hooks_tell
from billing.services.standing import payouts_check
from billing.services.top_ups import CLIENT_KEY_MAX_CHARS
from common.clock import utc_now
from common.money import MICROUSD_PER_USD, format_usd

MOST_MICROUSD = 10_000 * MICROUSD_PER_USD
State = Payout.State


class OddReversal(Exception):
    """A part of a transfer was reversed, or one that had reached the bank: an operator must look."""


@transaction.atomic
def payout_request(
    *, user: User, amount_microusd: int, idempotency_key: str, now: datetime | None = None
) -> Payout:
    """Take a payout out of an owner's available earnings; `payout_steps` sends it. The same key asks once.

    Raises AmountInvalid, KeyInvalid, IdempotencyConflict, EarningsImmature, PayoutAccountMissing,
    PayoutAccountUnready, PayoutsFrozen.
    """
    now = now or utc_now()
    whole_cents(amount_microusd)
    check_key(idempotency_key, max_chars=CLIENT_KEY_MAX_CHARS)
    # Requests of one owner take turns here; a repeat then finds what the first one did.
    accounts_lock([earnings_key(user.pk)])
    payout = Payout.objects.filter(user=user, idempotency_key=idempotency_key).first()
    if payout is not None:
        if payout.amount_microusd != amount_microusd:
            raise IdempotencyConflict(idempotency_key)
        return payout
    payouts_check(user)
    account = _account_ready(user)
    least_microusd = payout_country(account.country).minimum_microusd
    check_amount_between(amount_microusd, least_microusd=least_microusd, most_microusd=MOST_MICROUSD)
    _check_available(user, amount_microusd, now)
    payout = Payout.objects.create(
        user=user,
        idempotency_key=idempotency_key,
        amount_microusd=amount_microusd,
        fee_microusd=payout_fee_microusd(),
        stripe_account=account.stripe_id,
        next_try_at=now,
        created_at=now,
    )
    PayoutStep.objects.create(payout=payout, state=State.REQUESTED, at=now)
    # In the same transaction, so that a request that is accepted is covered.
    entries_post([payout_entry(payout_id=payout.pk, user_id=user.pk, amount_microusd=amount_microusd)])
    _move(payout.pk, State.DEBITED, now=now)
    payout.refresh_from_db()
    return payout


@transaction.atomic
def payout_transferred(*, payout_id: uuid.UUID, transfer_id: str, arrived_as: str, now: datetime) -> bool:
    """Stripe has moved the money into the owner's account there: it has left the books."""
    moved = _move(
        payout_id,
        State.TRANSFERRED,
        now=now,
        sources=[State.DEBITED],
        transfer_id=transfer_id,
        arrived_as=arrived_as,
    )
    if moved:
        payout = Payout.objects.get(pk=payout_id)
        entry = payout_sent_entry(
            payout_id=payout.pk, amount_microusd=payout.amount_microusd, fee_microusd=payout.fee_microusd
        )
        entries_post([entry])
    return moved


@transaction.atomic
def payout_refused(*, payout_id: uuid.UUID, because: str, now: datetime) -> bool:
    """Stripe has refused the transfer for good: the money, which never left, returns to the earnings."""
    moved = _move(
        payout_id, State.RETURNED, now=now, sources=[State.DEBITED], because=because, next_try_at=None
    )
    if moved:
        _give_back(payout_id, was_sent=False)
    return moved


@transaction.atomic
def payout_reversed(*, transfer_id: str, now: datetime) -> bool:
    """The whole transfer was reversed: Stripe has the money again, and so have the earnings. False: not ours yet.

    Raises OddReversal where the owner's bank had it: who was paid is not given it back.
    """
    payout = Payout.objects.filter(transfer_id=transfer_id).first()
    if payout is None:
        return False
    moved = _move(
        payout.pk,
        State.RETURNED,
        now=now,
        sources=[State.TRANSFERRED, State.FAILED],
        because="The transfer was reversed; the money is in your balance again.",
        next_try_at=None,
    )
    if moved:
        _give_back(payout.pk, was_sent=True)
    elif payout.state == State.PAID:
        raise OddReversal(f"{transfer_id} was reversed after payout {payout.pk} had been paid")
    return True


def payout_paid(*, bank_payout_id: str, now: datetime) -> bool:
    """The owner's bank has it. False if no payout of ours is known by this id yet."""
    payout = Payout.objects.filter(bank_payout_id=bank_payout_id).first()
    if payout is None:
        return False
    _move(payout.pk, State.PAID, now=now, because="", next_try_at=None)
    return True


def payout_bank_failed(*, bank_payout_id: str, because: str, now: datetime) -> bool:
    """The owner's bank refused it, also after it had been paid: the money waits in the owner's account at Stripe."""
    payout = Payout.objects.filter(bank_payout_id=bank_payout_id).first()
    if payout is None:
        return False
    _move(payout.pk, State.FAILED, now=now, because=because, next_try_at=None)
    return True


def payout_bank_refused(*, payout_id: uuid.UUID, because: str, now: datetime) -> bool:
    """Stripe would not even ask the bank: the money waits in the owner's account at Stripe."""
    return _move(
        payout_id, State.FAILED, now=now, sources=[State.TRANSFERRED], because=because, next_try_at=None
    )


@transaction.atomic
def payout_bank_retry(*, payout_id: uuid.UUID, now: datetime) -> bool:
    """Send a failed payout to the bank once more, with a key of its own. False unless it had failed."""
    moved = _move(payout_id, State.TRANSFERRED, now=now, sources=[State.FAILED], because="", next_try_at=now)
    if moved:
        payout = Payout.objects.get(pk=payout_id)
        Payout.objects.filter(pk=payout_id).update(
            bank_attempt=payout.bank_attempt + 1, bank_payout_id="", tries=0
        )
    return moved


@transaction.atomic
def payout_freeze(*, payout_id: uuid.UUID, operator: User, reason: str, now: datetime) -> None:
    """Send this payout no further: not to Stripe, not to the bank. What Stripe was asked already is seen through.

    Raises NotAnOperator, ReasonInvalid, PayoutNotFound, and PayoutGone once it is with the bank.
    """
    operator_check(operator)
    why, payout = reason_checked(reason), _locked(payout_id)
    if payout.state not in FREEZABLE or (payout.bank_payout_id and payout.state == State.TRANSFERRED):
        raise PayoutGone(
            f"This payout is {payout.state} and on its way to the bank, or over: nothing is stopped."
        )
    _set_frozen(payout, operator, "payout_freeze", why, because=why, now=now)


@transaction.atomic
def payout_unfreeze(*, payout_id: uuid.UUID, operator: User, reason: str, now: datetime) -> bool:
    """Send it on. False if it is not frozen. Raises NotAnOperator, ReasonInvalid, PayoutNotFound."""
    operator_check(operator)
    why, payout = reason_checked(reason), _locked(payout_id)
    if not payout.frozen_because:
        return False
    _set_frozen(payout, operator, "payout_unfreeze", why, because="", now=now)
    return True


def payout_may_begin(*, payout_id: uuid.UUID) -> None:
    """Raise PayoutsFrozen if an operator has stopped it or its owner's payouts. Behind its lock: a freeze that is
    there when a request would be stored keeps it from being made.
    """
    payout = _locked(payout_id)
    if payout.frozen_because:
        raise PayoutsFrozen(f"This payout is frozen: {payout.frozen_because}")
    if payout.state == State.DEBITED:
        payouts_check(payout.user)


def _locked(payout_id: uuid.UUID) -> Payout:
    payout = (
        Payout.objects.select_for_update(of=("self",)).select_related("user").filter(pk=payout_id).first()
    )
    if payout is None:
        raise PayoutNotFound("There is no such payout.")
    return payout


def _set_frozen(
    payout: Payout, operator: User, action: str, reason: str, *, because: str, now: datetime
) -> None:
    waits = payout.state != State.FAILED  # that one waits for its owner
    Payout.objects.filter(pk=payout.pk).update(
        frozen_because=because, next_try_at=now if waits and not because else payout.next_try_at
    )
    audit_note(
        operator=operator,
        action=action,
        user=payout.user,
        subject=f"payout:{payout.pk}",
        reason=reason,
        before={"state": payout.state, "frozen_because": payout.frozen_because},
        after={"state": payout.state, "frozen_because": because},
    )
    owner_hooks_tell(payout=Payout.objects.get(pk=payout.pk), now=now)


@transaction.atomic
def _move(
    payout_id: uuid.UUID, target: str, *, now: datetime, sources: list[str] | None = None, **fields: Any
) -> bool:
    """Go to `target` if the payout is in a state that may; True if this call was the one that did."""
    allowed = [state for state in sources_of(target) if sources is None or state in sources]
    if target not in FREEZABLE:
        fields["frozen_because"] = ""  # there is nothing left to stop
    moved = Payout.objects.filter(pk=payout_id, state__in=allowed).update(state=target, **fields)
    if moved:
        PayoutStep.objects.create(
            payout_id=payout_id, state=target, because=fields.get("because", ""), at=now
        )
        owner_hooks_tell(payout=Payout.objects.get(pk=payout_id), now=now)
    return bool(moved)


def _give_back(payout_id: uuid.UUID, *, was_sent: bool) -> None:
    payout = Payout.objects.get(pk=payout_id)
    entry = payout_returned_entry(
        payout_id=payout.pk,
        user_id=payout.user_id,
        amount_microusd=payout.amount_microusd,
        fee_microusd=payout.fee_microusd,
        was_sent=was_sent,
    )
    entries_post([entry])


def _account_ready(user: User) -> PayoutAccount:
    account = PayoutAccount.objects.filter(user=user).exclude(stripe_id="").first()
    if account is None:
        raise PayoutAccountMissing(
            "Open an account for payouts first: choose your country, then set it up there."
        )
    if account.transfers_status != READY:
        raise PayoutAccountUnready(in_words(account.transfers_status, account.status_code))
    return account


def _check_available(user: User, amount_microusd: int, now: datetime) -> None:
    available = available_microusd(user, now=now)
    if amount_microusd > available:
        raise EarningsImmature(
            f"{format_usd(available)} of your earnings can be paid out now; the rest is still maturing. "
            "Ask for less, or later.",
            field="amount_microusd",
        )
