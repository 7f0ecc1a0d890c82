"""Sends news to owners' addresses, which may be anything: so only to public ones, briefly, following nothing.

An address is looked up once, and the connection goes to what was looked up: a name that turns into an inner address
between the check and the call reaches nothing.
"""

import ipaddress
import logging
import socket
import uuid
from collections.abc import Callable
from datetime import datetime
from urllib.parse import urlsplit, urlunsplit

import httpx

from billing.domain.backoff import next_try
from billing.domain.hook_signing import HEADER, signature
from billing.models import OwnerDelivery

log = logging.getLogger(__name__)

TIMEOUT_S = 5.0
Post = Callable[[str, str, dict[str, str]], int]


class NotPublic(Exception):
    """The address is not on the public internet."""


def delivery_send(*, delivery_id: uuid.UUID, now: datetime, post: Post | None = None) -> None:
    """Send one delivery, unless that is done. Any 2xx is a receipt; else it is tried again, with growing pauses."""
    delivery = OwnerDelivery.objects.select_related("hook").get(pk=delivery_id)
    if delivery.state != OwnerDelivery.State.WAITING:
        return
    headers = {
        "Content-Type": "application/json",
        HEADER: signature(body=delivery.body, secret=delivery.hook.secret, at=now),
    }
    try:
        status = (post or post_publicly)(delivery.hook.url, delivery.body, headers)
        answer, received = f"HTTP {status}", 200 <= status < 300
    except (httpx.HTTPError, OSError, NotPublic, UnicodeError) as problem:
        answer, received = type(problem).__name__, False
    waiting = OwnerDelivery.objects.filter(pk=delivery_id, state=OwnerDelivery.State.WAITING)
    tries = delivery.tries + 1
    again_at = next_try(tries=tries, now=now)
    if received:
        waiting.update(
            state=OwnerDelivery.State.DELIVERED,
            tries=tries,
            last_answer=answer,
            next_try_at=None,
            delivered_at=now,
        )
    elif again_at is None:
        waiting.update(state=OwnerDelivery.State.GIVEN_UP, tries=tries, last_answer=answer, next_try_at=None)
    else:
        waiting.update(tries=tries, last_answer=answer, next_try_at=again_at)


def post_publicly(url: str, body: str, headers: dict[str, str]) -> int:
    """POST to a public https address; the answer's status, its body unread. Raises NotPublic, OSError, HTTPError."""
    parts = urlsplit(url)
    host, port = parts.hostname or "", parts.port or 443
    address = _public_address(host, port)
    netloc = f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
    target = urlunsplit(("https", netloc, parts.path or "/", parts.query, ""))
    with (
        httpx.Client(timeout=TIMEOUT_S, follow_redirects=False, trust_env=False) as client,
        client.stream(
            "POST",
            target,
            content=body,
            headers={**headers, "Host": parts.netloc},
            extensions={"sni_hostname": host},  # whose certificate must be shown
        ) as response,
    ):
        return response.status_code


def _public_address(host: str, port: int) -> str:
    """One address of the host's; all of them must be public."""
    found = [str(info[4][0]) for info in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
    if not found or not all(ipaddress.ip_address(address).is_global for address in found):
        raise NotPublic(host)
    return found[0]
