"""Chargebacks: the card's holder wants a top-up back. The wallet is frozen at once, until all are won or an operator
lifts the freeze.

Stripe tells of three things, each with one effect: that there is a dispute, that it took the money, that it gave it
back. They may come in any order; whoever comes too early is told so and comes again.
"""

from datetime import datetime

from django.db import transaction

from accounts.services import user_lock
from billing.domain.amounts import MICROUSD_PER_CENT
from billing.domain.entries import wallet_key
from billing.domain.stripe_entries import chargeback_entry, chargeback_returned_entry
from billing.gateway.client import Json
from billing.models import Dispute, TopUp
from billing.posting import accounts_lock, entries_post
from billing.services.standing import wallet_freeze, wallet_thaw

FROZEN_BECAUSE = "a payment into it has been disputed with its bank."
WON = "won"
DECIDED = (WON, "lost")  # no later word changes it


@transaction.atomic
def dispute_note(dispute: Json) -> bool:
    """Keep the dispute's status. A new one freezes the wallet, the last one that is won lifts that again.

    False if its payment is not known yet.
    """
    top_up = TopUp.objects.select_related("user").filter(payment_intent_id=dispute["payment_intent"]).first()
    if top_up is None:
        return False
    user_lock(top_up.user)  # of two disputes that are won at once, the later one must see the other
    _, is_new = Dispute.objects.get_or_create(
        stripe_id=dispute["id"],
        defaults={
            "status": dispute["status"],
            "top_up": top_up,
            "amount_microusd": dispute["amount"] * MICROUSD_PER_CENT,
        },
    )
    Dispute.objects.filter(pk=dispute["id"]).exclude(status__in=DECIDED).update(status=dispute["status"])
    disputes = Dispute.objects.filter(top_up__user=top_up.user)
    if not disputes.exclude(status=WON).exists():
        wallet_thaw(user=top_up.user, because=FROZEN_BECAUSE)
    elif is_new and dispute["status"] != WON:
        wallet_freeze(user=top_up.user, because=FROZEN_BECAUSE)
    return True


@transaction.atomic
def dispute_withdrawn(dispute: Json, *, now: datetime) -> bool:
    """Stripe took the money: the wallet gives what it has of it, the platform stands for the rest."""
    if not dispute_note(dispute):
        return False
    row = Dispute.objects.select_for_update(of=("self",)).select_related("top_up").get(pk=dispute["id"])
    if row.withdrawn_at is not None:
        return True
    user_id = row.top_up.user_id
    wallet = accounts_lock([wallet_key(user_id)])[wallet_key(user_id)]
    from_wallet_microusd = min(wallet.balance_microusd, row.amount_microusd)
    entries_post(
        [
            chargeback_entry(
                dispute_id=row.pk,
                user_id=user_id,
                amount_microusd=row.amount_microusd,
                from_wallet_microusd=from_wallet_microusd,
            )
        ]
    )
    Dispute.objects.filter(pk=row.pk).update(withdrawn_at=now, from_wallet_microusd=from_wallet_microusd)
    return True


@transaction.atomic
def dispute_reinstated(dispute: Json, *, now: datetime) -> bool:
    """Stripe gave it back: so do we, each part to where it came from. False until it is known to have been taken."""
    row = (
        Dispute.objects.select_for_update(of=("self",))
        .select_related("top_up")
        .filter(pk=dispute["id"], withdrawn_at__isnull=False)
        .first()
    )
    if row is None:
        return False
    if row.reinstated_at is not None:
        return True
    entries_post(
        [
            chargeback_returned_entry(
                dispute_id=row.pk,
                user_id=row.top_up.user_id,
                amount_microusd=row.amount_microusd,
                from_wallet_microusd=row.from_wallet_microusd,
            )
        ]
    )
    Dispute.objects.filter(pk=row.pk).update(reinstated_at=now)
    return True
