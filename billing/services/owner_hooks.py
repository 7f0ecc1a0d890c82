"""Owners' hooks: made, removed, told of payouts, and told again. `billing.delivering` sends what waits here."""

import json
import secrets
import uuid
from datetime import datetime
from urllib.parse import urlsplit

from django.db import transaction

from accounts.models import User
from billing.errors import HookInvalid, HookLimit, HookNotFound
from billing.models import OwnerDelivery, OwnerHook, Payout
from common.clock import utc_now

MAX_HOOKS = 5
URL_MAX_CHARS = 300
SECRET_BYTES = 32


@transaction.atomic
def owner_hook_create(*, user: User, url: str) -> OwnerHook:
    """A hook for this address, the one there is if there is one. Raises HookInvalid unless it is https, HookLimit."""
    parts = urlsplit(url)
    if parts.scheme != "https" or not parts.hostname or "@" in parts.netloc or len(url) > URL_MAX_CHARS:
        raise HookInvalid(
            f"url must begin with https://, name a host and no password, in {URL_MAX_CHARS} characters.",
            field="url",
        )
    hook = OwnerHook.objects.filter(user=user, url=url).first()
    if hook is not None:
        return hook
    if OwnerHook.objects.filter(user=user).count() >= MAX_HOOKS:
        raise HookLimit(f"You have {MAX_HOOKS} hooks; remove one first.")
    return OwnerHook.objects.create(user=user, url=url, secret=f"nswh_{secrets.token_hex(SECRET_BYTES)[:56]}")


def owner_hook_delete(*, user: User, hook_id: uuid.UUID) -> None:
    """Remove a hook and its log. Raises HookNotFound."""
    deleted, _ = OwnerHook.objects.filter(user=user, pk=hook_id).delete()
    if not deleted:
        raise HookNotFound("You have no such hook.")


def owner_hooks_tell(*, payout: Payout, now: datetime) -> None:
    """Put the payout's state on its way to its owner's hooks, in the transaction that makes it so."""
    hooks = OwnerHook.objects.filter(user=payout.user_id)
    deliveries = [
        OwnerDelivery(hook=hook, type=f"payout.{payout.state}", created_at=now, next_try_at=now)
        for hook in hooks
    ]
    for delivery in deliveries:
        delivery.body = _body(delivery, payout)
    OwnerDelivery.objects.bulk_create(deliveries)


def owner_delivery_replay(
    *, user: User, delivery_id: uuid.UUID, now: datetime | None = None
) -> OwnerDelivery:
    """Send it once more, the same bytes under the same id, delivered or not. Raises HookNotFound."""
    replayed = OwnerDelivery.objects.filter(pk=delivery_id, hook__user=user).update(
        state=OwnerDelivery.State.WAITING, tries=0, next_try_at=now or utc_now()
    )
    if not replayed:
        raise HookNotFound("You have no such delivery.")
    return OwnerDelivery.objects.get(pk=delivery_id)


def _body(delivery: OwnerDelivery, payout: Payout) -> str:
    told = {
        "id": str(payout.pk),
        "state": payout.state,
        "because": payout.because,
        "frozen_because": payout.frozen_because,
        "amount_microusd": payout.amount_microusd,
        "fee_microusd": payout.fee_microusd,
        "net_microusd": payout.net_microusd,
    }
    news = {
        "id": str(delivery.pk),
        "type": delivery.type,
        "created_at": delivery.created_at.isoformat(),
        "payout": told,
    }
    return json.dumps(news)
