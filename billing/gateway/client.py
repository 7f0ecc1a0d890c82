"""Stripe's API as this project uses it, through the official library.

A thin layer: it chooses the endpoint, carries the idempotency key, and sorts what can go wrong into two kinds: Stripe
said no (`StripeRefused`), or nobody knows (`StripeUnavailable`). Keys and parameters are never logged.
"""

import json
import logging
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import lru_cache
from http import HTTPStatus
from typing import Any

import stripe
from django.conf import settings

from billing.errors import StripeNotConfigured, StripeRefused, StripeUnavailable, WebhookUnsigned

log = logging.getLogger(__name__)

Json = dict[str, Any]
TIMEOUT_S = 20
# What says no more than: not now, or not with this key of ours. Any other 4xx is a no to the request itself.
_OPEN_STATUSES = (
    HTTPStatus.UNAUTHORIZED,
    HTTPStatus.REQUEST_TIMEOUT,
    HTTPStatus.CONFLICT,
    HTTPStatus.TOO_MANY_REQUESTS,
)
SIGNATURE_TOLERANCE_S = 300
PAGE_SIZE = 100
MAX_PAGES = 1_000


def _operations(client: stripe.StripeClient) -> dict[str, Callable[..., Any]]:
    """Requests that change something, by the name under which they are stored."""
    v1 = client.v1
    return {
        "account": client.v2.core.accounts.create,
        "account_link": client.v2.core.account_links.create,
        "balance_settings": v1.balance_settings.update,
        "checkout_session": v1.checkout.sessions.create,
        "customer": v1.customers.create,
        "payment_intent": v1.payment_intents.create,
        "payment_intent_cancel": lambda params, options: v1.payment_intents.cancel(
            params["id"], options=options
        ),
        "payment_method_detach": lambda params, options: v1.payment_methods.detach(
            params["id"], options=options
        ),
        "payout": v1.payouts.create,
        "refund": v1.refunds.create,
        "transfer": v1.transfers.create,
    }


class StripeGateway:
    """One client for one key at one address."""

    def __init__(self, *, secret_key: str, api_base: str) -> None:
        if not secret_key:
            raise StripeNotConfigured
        self._client = stripe.StripeClient(
            secret_key,
            base_addresses={"api": api_base},
            http_client=stripe.RequestsClient(timeout=TIMEOUT_S),
            max_network_retries=0,  # what is tried again is tried by whoever keeps the key
        )
        self._operations = _operations(self._client)

    def send(self, operation: str, *, params: Json, key: str, stripe_account: str = "") -> Json:
        """Make one request that changes something. Raises StripeRefused or StripeUnavailable."""
        options: Json = {"idempotency_key": key}
        if stripe_account:
            options["stripe_account"] = stripe_account
        return _asked(lambda: self._operations[operation](params=params, options=options))

    def find_made(self, operation: str, *, params: Json, key: str, stripe_account: str = "") -> Json | None:
        """What an earlier request under `key` made, found by its metadata: Stripe forgets keys after a day."""
        options: stripe.RequestOptions = {"stripe_account": stripe_account} if stripe_account else {}
        v1 = self._client.v1
        listings: dict[str, Callable[[], Any]] = {
            "payment_intent": lambda: v1.payment_intents.list(
                {"customer": params["customer"], "limit": PAGE_SIZE}, options
            ),
            "payout": lambda: v1.payouts.list({"limit": PAGE_SIZE}, options),
            "refund": lambda: v1.refunds.list(
                {"payment_intent": params["payment_intent"], "limit": PAGE_SIZE}, options
            ),
            "transfer": lambda: v1.transfers.list(
                {"transfer_group": params["transfer_group"], "limit": PAGE_SIZE}, options
            ),
        }
        if operation not in listings:
            return None
        made = _asked(listings[operation])["data"]
        return next((item for item in made if item["metadata"].get("key") == key), None)

    def account(self, account_id: str) -> Json:
        """An owner's account (Accounts v2) with the state of its capabilities."""
        return _asked(
            lambda: self._client.v2.core.accounts.retrieve(
                account_id, {"include": ["configuration.recipient", "requirements"]}
            )
        )

    def arrival(self, payment_id: str, *, stripe_account: str) -> Json:
        """What a transfer became in the owner's account: `net`, `currency` and `available_on` of the payment."""
        payment = _asked(
            lambda: self._client.v1.charges.retrieve(
                payment_id, {"expand": ["balance_transaction"]}, {"stripe_account": stripe_account}
            )
        )
        arrived: Json = payment["balance_transaction"]
        return arrived

    def saved_card(self, setup_intent_id: str) -> Json:
        """The card that a buyer has saved on Stripe's page: its `id` and the public part of its `card`."""
        intent = _asked(
            lambda: self._client.v1.setup_intents.retrieve(setup_intent_id, {"expand": ["payment_method"]})
        )
        saved: Json = intent["payment_method"]
        return saved

    def balance_transactions(self, *, since: datetime) -> Iterator[Json]:
        """Every movement of our balance at Stripe since then, newest first, each with its source."""
        params: Json = {
            "created": {"gte": int(since.timestamp())},
            "limit": PAGE_SIZE,
            "expand": ["data.source"],
        }
        for _ in range(MAX_PAGES):
            page = _asked(lambda params=params: self._client.v1.balance_transactions.list(params))  # type: ignore[misc]
            yield from page["data"]
            if not page["has_more"]:
                return
            params = {**params, "starting_after": page["data"][-1]["id"]}
        raise RuntimeError(f"more than {MAX_PAGES * PAGE_SIZE} balance transactions: choose a later start")


def gateway() -> StripeGateway:
    """The gateway of this site's settings. Raises StripeNotConfigured."""
    return _gateway(settings.STRIPE_SECRET_KEY, settings.STRIPE_API_BASE)


@lru_cache(maxsize=4)
def _gateway(secret_key: str, api_base: str) -> StripeGateway:
    return StripeGateway(secret_key=secret_key, api_base=api_base)


def signature_check(body: str, header: str) -> None:
    """Raise WebhookUnsigned unless one of our endpoints' secrets has signed this body in the last five minutes."""
    for secret in settings.STRIPE_WEBHOOK_SECRETS:
        try:
            stripe.WebhookSignature.verify_header(body, header, secret, SIGNATURE_TOLERANCE_S)
        except stripe.SignatureVerificationError:
            continue
        return
    raise WebhookUnsigned("This is not signed by Stripe for this site, or too long ago: check the secret.")


def _asked(request: Callable[[], Any]) -> Json:
    """The answer as plain JSON; what went wrong as one of our two kinds."""
    try:
        answer = request()
    except stripe.StripeError as error:
        if not _is_refusal(error):
            # No connection, a 5xx, too many requests, a key in use or a wrong one of ours: it may have been done.
            log.warning("Stripe gave no answer (%s, request %s)", type(error).__name__, error.request_id)
            raise StripeUnavailable from error
        told: Json = (error.json_body or {}).get("error", {}) if isinstance(error.json_body, dict) else {}
        code = error.code or told.get("type") or ""
        log.warning("Stripe refused request %s: %s", error.request_id, code)
        raise StripeRefused(
            code,
            decline_code=told.get("decline_code") or "",
            about=(told.get("payment_intent") or {}).get("id", ""),
        ) from error
    plain: Json = json.loads(str(answer))
    return plain


def _is_refusal(error: stripe.StripeError) -> bool:
    """Whether Stripe said no for good. By status, not by class: the v2 API has one of its own for each reason."""
    status = error.http_status or 0
    return (
        400 <= status < 500
        and status not in _OPEN_STATUSES
        and not isinstance(error, stripe.IdempotencyError | stripe.RateLimitError)
    )
