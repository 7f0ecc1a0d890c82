"""Owners' accounts at Stripe: opened, set up on Stripe's own pages, and heard of again."""

import uuid
from datetime import datetime

from django.conf import settings

from accounts.models import User
from billing.domain.countries import payout_country
from billing.errors import PayoutAccountMissing, PayoutAccountRefused, StripeRefused
from billing.gateway.calls import call_make, key_after_refusals
from billing.gateway.client import Json, StripeGateway, gateway
from billing.models import PayoutAccount, StripeCall
from common.clock import utc_now

_CLOSED = "closed"


def payout_account_open(*, user: User, country: str, now: datetime | None = None) -> PayoutAccount:
    """Open an account for an owner, once; the country of one that is open, or may be, stays.

    Raises CountryUnsupported, PayoutAccountRefused, StripeNotConfigured, StripeUnavailable.
    """
    now = now or utc_now()
    code = payout_country(country).code
    stripe = gateway()
    account, _ = PayoutAccount.objects.get_or_create(user=user, defaults={"country": code})
    if account.transfers_status == _CLOSED:
        # The closed one's id is part of the new one's key, so that it is another request.
        PayoutAccount.objects.filter(pk=user.pk, transfers_status=_CLOSED).update(
            country=code, transfers_status="unopened", status_code="", pays_by_hand=False
        )
        account.refresh_from_db()
    if account.transfers_status == "unopened":
        try:
            _open(stripe, account, code, now)
        except StripeRefused as refusal:
            raise PayoutAccountRefused(refusal.stripe_code) from refusal
        account.refresh_from_db()
    return account


def onboarding_link(*, user: User, now: datetime | None = None) -> str:
    """The address of Stripe's set-up pages for this owner; good for one visit within minutes.

    Raises PayoutAccountMissing, StripeNotConfigured, StripeRefused, StripeUnavailable.
    """
    account = PayoutAccount.objects.filter(user=user).exclude(stripe_id="").first()
    if account is None:
        raise PayoutAccountMissing("Choose your country first; then Stripe asks for the rest.")
    onboarding = {
        "collection_options": {"fields": "currently_due"},
        "refresh_url": f"{settings.PUBLIC_URL}/payouts/refresh/",
        "return_url": f"{settings.PUBLIC_URL}/payouts/return/",
    }
    params = {
        "account": account.stripe_id,
        "use_case": {"type": "account_onboarding", "account_onboarding": onboarding},
    }
    key = f"account_link:{uuid.uuid4()}"
    url: str = call_make(gateway(), "account_link", key=key, params=params, now=now or utc_now())["url"]
    return url


def payout_account_sync(*, stripe_id: str, now: datetime | None = None) -> bool:
    """Ask Stripe how an account stands. False if it is none of ours.

    The answer of the moment is kept, whatever the event that made us ask said: so their order does not matter.
    """
    if not PayoutAccount.objects.filter(stripe_id=stripe_id).exists():
        return False
    try:
        status, code = _standing(gateway().account(stripe_id))
    except StripeRefused:
        status, code = _CLOSED, ""
    PayoutAccount.objects.filter(stripe_id=stripe_id).update(
        transfers_status=status, status_code=code, heard_at=now or utc_now()
    )
    return True


def payout_account_weekly(*, user: User, weekly: bool) -> None:
    """Pay out what is available every Monday, or stop doing so. Raises PayoutAccountMissing."""
    if not PayoutAccount.objects.filter(user=user).update(weekly=weekly, weekly_note=""):
        raise PayoutAccountMissing("Open an account for payouts first.")


def _open(stripe: StripeGateway, account: PayoutAccount, country: str, now: datetime) -> None:
    """Have Stripe open the account, then have it pay out only when asked: payouts are one to one with ours."""
    key = key_after_refusals(f"account:{account.user_id}:{account.stripe_id or 'first'}")
    if account.country != country and not StripeCall.objects.filter(key=key).exists():
        PayoutAccount.objects.filter(pk=account.pk, transfers_status="unopened").update(country=country)
        account.refresh_from_db()
    transfers = {"stripe_transfers": {"requested": True}}
    params: Json = {
        "contact_email": account.user.email,
        "dashboard": "express",
        "identity": {"country": account.country.lower()},
        "configuration": {"recipient": {"capabilities": {"stripe_balance": transfers}}},
        "defaults": {
            "responsibilities": {"fees_collector": "application", "losses_collector": "application"},
        },
    }
    made = call_make(stripe, "account", key=key, params=params, now=now)
    by_hand: Json = {"payments": {"payouts": {"schedule": {"interval": "manual"}}}}
    call_make(
        stripe,
        "balance_settings",
        key=key_after_refusals(f"balance_settings:{made['id']}"),
        params=by_hand,
        now=now,
        stripe_account=made["id"],
    )
    PayoutAccount.objects.filter(pk=account.pk, transfers_status="unopened").update(
        stripe_id=made["id"], transfers_status="restricted", pays_by_hand=True, heard_at=now
    )


def _standing(account: Json) -> tuple[str, str]:
    """The transfers capability's status and the first reason for it."""
    if account.get("closed"):
        return _CLOSED, ""
    configuration = account.get("configuration") or {}
    recipient = configuration.get("recipient") or {}
    balance = (recipient.get("capabilities") or {}).get("stripe_balance") or {}
    capability = balance.get("stripe_transfers") or {"status": "restricted"}
    details = capability.get("status_details") or [{}]
    return capability["status"], details[0].get("code", "")
