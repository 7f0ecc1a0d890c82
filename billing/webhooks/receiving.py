"""Takes an event in: its size, its signature, its shape; then it is stored, whatever its type."""

import json
from datetime import UTC, datetime
from typing import Any

from billing.errors import WebhookTooLarge, WebhookUnreadable
from billing.gateway.client import signature_check
from billing.models import StripeEvent

MAX_BODY_BYTES = 256 * 1024  # Stripe's own are a few KB


def event_receive(*, body: bytes, signature: str, now: datetime) -> StripeEvent:
    """The stored event; one that came before is the same row. Raises a WebhookError."""
    if len(body) > MAX_BODY_BYTES:
        raise WebhookTooLarge(f"An event has at most {MAX_BODY_BYTES} bytes.")
    try:
        text = body.decode()
    except UnicodeDecodeError:
        raise WebhookUnreadable("An event is JSON in UTF-8.") from None
    signature_check(text, signature)
    event_id, facts = _facts(text)
    event, _ = StripeEvent.objects.get_or_create(
        event_id=event_id, defaults={**facts, "body": text, "received_at": now, "next_try_at": now}
    )
    return event


def _facts(text: str) -> tuple[str, dict[str, Any]]:
    """What we file an event under. Those of Stripe's v2 API are thin: they name their object and no more."""
    try:
        event = json.loads(text)
        if event["object"] == "v2.core.event":
            occurred_at = datetime.fromisoformat(event["created"])
            object_id = (event.get("related_object") or {}).get("id", "")
        else:
            occurred_at = datetime.fromtimestamp(event["created"], tz=UTC)
            object_id = event["data"]["object"].get("id", "")
        facts = {
            "type": event["type"],
            "stripe_account": event.get("account") or "",
            "object_id": object_id,
            "occurred_at": occurred_at,
        }
        return event["id"], facts
    except (ValueError, KeyError, TypeError, AttributeError):
        raise WebhookUnreadable("This is no event of Stripe's: it lacks what every event has.") from None
