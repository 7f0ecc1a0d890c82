"""What moves money within the books. Each service is one transaction: all of it happens, or nothing does.

Amounts are positive integers of micro-USD. Every service may be called again with the same arguments, after a crash
or a lost answer, and moves the money once.
"""

import uuid
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from django.conf import settings
from django.db import transaction

from accounts.models import User
from accounts.services import user_lock
from billing.domain.amounts import check_amount
from billing.domain.entries import (
    REFERENCE_MAX_CHARS,
    Charge,
    Entry,
    charge_entry,
    check_key,
    earnings_key,
    grant_entry,
    hold_entry,
    release_entry,
    wallet_key,
)
from billing.errors import HoldNotFound, HoldReleased, IdempotencyConflict
from billing.models import Account, Earning, Hold, OperatorAction, Posting, Transfer
from billing.posting import accounts_lock, entries_post
from billing.selectors.rates import tariff_at
from billing.services.audit import audit_note, operator_check, reason_checked
from billing.services.auto_top_up_terms import auto_top_up_mark
from billing.services.standing import wallet_check
from common.clock import utc_now


@transaction.atomic
def grant_post(
    *, user: User, amount_microusd: int, operator: User, idempotency_key: str, reason: str, memo: str = ""
) -> Transfer:
    """Put money of the platform into a person's wallet. The person sees `memo`, the audit log has `reason`.

    Raises NotAnOperator unless `operator` is active staff, ReasonInvalid.
    """
    operator_check(operator)
    why = reason_checked(reason)
    entry = grant_entry(
        user_id=user.pk,
        amount_microusd=amount_microusd,
        operator_id=operator.pk,
        idempotency_key=idempotency_key,
        memo=memo,
    )
    transfer = entries_post([entry])[0]
    subject = f"transfer:{transfer.pk}"
    # Behind the accounts' locks: whoever asks again finds the line of the first.
    if not OperatorAction.objects.filter(action="grant", subject=subject).exists():
        audit_note(
            operator=operator,
            action="grant",
            user=user,
            subject=subject,
            reason=why,
            after={"to": wallet_key(user.pk), "amount_microusd": amount_microusd},
        )
    return transfer


@transaction.atomic
def hold_open(
    *, user: User, reference: str, amount_microusd: int, fee_basis_points: int | None = None
) -> Hold:
    """Set money of a buyer's wallet aside under `reference`.

    The platform keeps `fee_basis_points` of what is charged to it, however the fee changes later; by default the fee
    in force now.

    Raises InsufficientFunds, IdempotencyConflict, WalletFrozen.
    """
    check_amount(amount_microusd)
    check_key(reference, field="reference", max_chars=REFERENCE_MAX_CHARS)
    wallet_of_user = wallet_key(user.pk)
    user_lock(user)  # in turns with `wallet_freeze`: nothing is set aside of a wallet that is frozen
    # The same request waits for this lock, and then finds the hold that the first one opened.
    wallet = accounts_lock([wallet_of_user])[wallet_of_user]
    hold = Hold.objects.filter(reference=reference).first()
    if hold is not None:
        if (hold.wallet_id, hold.amount_microusd) != (wallet.pk, amount_microusd):
            raise IdempotencyConflict(f"hold:{reference}")
        return hold
    wallet_check(user)
    hold_id = uuid.uuid4()
    entry = hold_entry(
        wallet=wallet.key, hold_key=f"hold:{hold_id}", reference=reference, amount_microusd=amount_microusd
    )
    entries_post([entry])
    auto_top_up_mark(user_id=user.pk, now=utc_now())
    return Hold.objects.create(
        id=hold_id,
        reference=reference,
        account=Account.objects.get(key=f"hold:{hold_id}"),
        wallet=wallet,
        amount_microusd=amount_microusd,
        fee_basis_points=tariff_at(utc_now()).fee_basis_points
        if fee_basis_points is None
        else fee_basis_points,
    )


@transaction.atomic
def hold_charge(
    *, reference: str, charges: Sequence[Charge], memo: str = "", now: datetime | None = None
) -> list[Transfer]:
    """Pay owners out of a hold, the platform's fee taken from each charge: all of the charges or none.

    What an owner earns can be paid out after the hold-back. A charge that was posted before moves nothing.
    Raises InsufficientFunds when the new ones come to more than the hold has left, HoldReleased when there are
    new ones and it has been released.
    """
    hold = _hold_lock(reference)
    entries = [
        charge_entry(
            charge,
            hold_key=hold.account.key,
            fee_basis_points=hold.fee_basis_points,
            memo=memo,
        )
        for charge in charges
    ]
    if hold.state == Hold.State.RELEASED:
        keys = {entry.idempotency_key for entry in entries}
        if Transfer.objects.filter(idempotency_key__in=keys).count() < len(keys):
            raise HoldReleased(reference)
    transfers = entries_post(entries)
    _earnings_note(charges, entries, transfers, now or utc_now())
    return transfers


def _earnings_note(
    charges: Sequence[Charge], entries: Sequence[Entry], transfers: Sequence[Transfer], now: datetime
) -> None:
    """Write down what each new charge earned; of one that was posted before, the first note stays."""
    matures_at = now + timedelta(days=settings.EARNINGS_HOLD_BACK_DAYS)
    notes = []
    for charge, entry, transfer in zip(charges, entries, transfers, strict=True):
        earned_microusd = entry.lines.get(earnings_key(charge.owner_id), 0)
        notes.append(
            Earning(
                transfer=transfer,
                owner_id=charge.owner_id,
                device_id=charge.device_id,
                day=now.astimezone(UTC).date(),
                amount_microusd=earned_microusd,
                fee_microusd=charge.amount_microusd - earned_microusd,
                matures_at=matures_at,
            )
        )
    Earning.objects.bulk_create(notes, ignore_conflicts=True)


@transaction.atomic
def hold_release(*, reference: str) -> int:
    """Give what is left of a hold back to its wallet; returns how much that was, also when asked again."""
    hold = _hold_lock(reference)
    if hold.state == Hold.State.RELEASED:
        given_back = Posting.objects.filter(
            account=hold.wallet, transfer__idempotency_key=f"release:{reference}"
        )
        return given_back.values_list("amount_microusd", flat=True).first() or 0
    # Read anew behind the lock: the row that came along with the hold may be older than it.
    rest_microusd = Account.objects.get(pk=hold.account_id).balance_microusd
    if rest_microusd:
        entry = release_entry(
            wallet=hold.wallet.key,
            hold_key=hold.account.key,
            reference=reference,
            amount_microusd=rest_microusd,
        )
        entries_post([entry])
    Hold.objects.filter(pk=hold.pk).update(state=Hold.State.RELEASED)
    return rest_microusd


def _hold_lock(reference: str) -> Hold:
    """The hold, locked until the transaction ends: its charges and its release take turns."""
    try:
        return (
            Hold.objects.select_for_update(of=("self",))
            .select_related("account", "wallet")
            .get(reference=reference)
        )
    except Hold.DoesNotExist:
        raise HoldNotFound(reference) from None
