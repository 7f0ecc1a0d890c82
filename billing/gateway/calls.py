"""Calls that are stored before they are made, so that none is made twice and none is forgotten.

`call_make` may be called again with the same key at any time, by any process. Once Stripe has answered, the stored
answer is given; until then the same request is made again under the same key. After a day Stripe may have forgotten
the key, so an older call is looked for among what exists before it is made again.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Q

from billing.errors import IdempotencyConflict, StripeRefused, StripeUnavailable
from billing.gateway.client import Json, StripeGateway
from billing.models import StripeCall

KEYS_LIVE_FOR = timedelta(hours=20)  # Stripe keeps keys for at least 24
_KEPT = ("id", "status", "url", "payment_intent", "destination_payment")


def call_make(
    stripe: StripeGateway,
    operation: str,
    *,
    key: str,
    params: Json,
    now: datetime,
    stripe_account: str = "",
    may_begin: Callable[[], None] = lambda: None,
) -> Json:
    """What Stripe answered to this request, made now or earlier. Not to be called inside a transaction.

    `may_begin` is called in the transaction that would store the request for the first time, and stops it by raising.

    Raises StripeRefused (for good), StripeUnavailable (call again), IdempotencyConflict (a key used for two things).
    """
    if operation in ("payment_intent", "payout", "refund", "transfer"):
        params = {**params, "metadata": {**params.get("metadata", {}), "key": key}}
    call = _stored(
        operation, key=key, params=params, now=now, stripe_account=stripe_account, may_begin=may_begin
    )
    if call.state == StripeCall.State.BEGUN:
        _settle(stripe, call, now)
    if call.state == StripeCall.State.REFUSED:
        raise StripeRefused(**call.answer)
    answer: Json = call.answer
    return answer


def key_after_refusals(key: str) -> str:
    """`key`, or another one for each time that Stripe has refused it: for what a person may ask for again.

    What was refused was not done, and its reason may have been put right since.
    """
    refused = StripeCall.objects.filter(
        Q(key=key) | Q(key__startswith=f"{key}:again-"), state=StripeCall.State.REFUSED
    ).count()
    return f"{key}:again-{refused}" if refused else key


@transaction.atomic(durable=True)
def _stored(
    operation: str,
    *,
    key: str,
    params: Json,
    now: datetime,
    stripe_account: str,
    may_begin: Callable[[], None],
) -> StripeCall:
    """The call's row, committed before anything is sent."""
    call, made = StripeCall.objects.get_or_create(
        key=key,
        defaults={
            "operation": operation,
            "params": params,
            "stripe_account": stripe_account,
            "begun_at": now,
        },
    )
    if made:
        may_begin()
    if (call.operation, call.params, call.stripe_account) != (operation, params, stripe_account):
        raise IdempotencyConflict(key)
    return call


def _settle(stripe: StripeGateway, call: StripeCall, now: datetime) -> None:
    """Send the request, or find what it made long ago, and keep what comes of it."""
    try:
        answer = _found_or_sent(stripe, call, now)
    except StripeRefused as refusal:
        _end(call, StripeCall.State.REFUSED, _refusal(refusal), now)
    except StripeUnavailable as problem:
        cause = type(problem.__cause__).__name__
        StripeCall.objects.filter(pk=call.pk).update(tries=call.tries + 1, last_problem=cause)
        raise
    else:
        _end(call, StripeCall.State.ANSWERED, {name: answer[name] for name in _KEPT if name in answer}, now)


def _refusal(refusal: StripeRefused) -> Json:
    return {
        "stripe_code": refusal.stripe_code,
        "decline_code": refusal.decline_code,
        "about": refusal.about,
    }


def _found_or_sent(stripe: StripeGateway, call: StripeCall, now: datetime) -> Json:
    request: dict[str, Any] = {"params": call.params, "key": call.key, "stripe_account": call.stripe_account}
    if now - call.begun_at > KEYS_LIVE_FOR:
        made = stripe.find_made(call.operation, **request)
        if made is not None:
            return made
    return stripe.send(call.operation, **request)


def _end(call: StripeCall, state: StripeCall.State, answer: Json, now: datetime) -> None:
    """Two processes may have asked at once: Stripe told both the same, the first to come here keeps it."""
    ended = StripeCall.objects.filter(pk=call.pk, state=StripeCall.State.BEGUN).update(
        state=state, answer=answer, ended_at=now, tries=call.tries + 1
    )
    if ended:
        call.state, call.answer = state, answer
    else:
        call.refresh_from_db()
