"""Being paid out: balances, the account at Stripe, payouts and their states in words."""

from uuid import UUID

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render

from accounts.requests import person
from billing.domain.capability import READY, in_words
from billing.pages.forms import AmountForm, CountryForm
from billing.pages.requests import page, said, said_invalid
from billing.selectors import (
    earnings_balances,
    payout_account_of,
    payout_estimate,
    payout_of,
    payouts_of,
)
from billing.services import (
    onboarding_link,
    payout_account_open,
    payout_account_sync,
    payout_account_weekly,
    payout_bank_retry,
    payout_request,
)
from common.clock import utc_now

SHOWN = 50


@page("GET", "HEAD")
def payouts(request: HttpRequest) -> HttpResponseBase:
    user, now = person(request), utc_now()
    opened = payout_account_of(user)
    context = {
        "pays_money": bool(settings.STRIPE_SECRET_KEY),
        "balances": earnings_balances(user, now=now),
        "estimate": payout_estimate(user, amount_microusd=None, now=now),
        "account": opened,
        "words": in_words(opened.transfers_status, opened.status_code) if opened else "",
        "ready": opened is not None and opened.transfers_status == READY,
        "payouts": payouts_of(user)[:SHOWN],
        "country_form": CountryForm(),
        "amount_form": AmountForm(),
    }
    return render(request, "billing/payouts.html", context)


@page("POST")
def account(request: HttpRequest) -> HttpResponseBase:
    form = CountryForm(request.POST)
    if form.is_valid():
        said(
            request,
            lambda: payout_account_open(user=person(request), country=form.cleaned_data["country"]),
            done="Your account is open. Now set it up at Stripe.",
        )
    else:
        messages.error(request, "Choose one of the countries that payouts reach.")
    return redirect("payouts")


@page("GET")
def set_up(request: HttpRequest) -> HttpResponseBase:
    """Off to Stripe's set-up pages. Stripe sends owners here for a new link, too, when theirs was used."""
    link = said(request, lambda: onboarding_link(user=person(request)))
    return redirect(link) if link else redirect("payouts")


@page("GET")
def come_back(request: HttpRequest) -> HttpResponseBase:
    """Back from Stripe, finished or not: ask how the account stands."""
    opened = payout_account_of(person(request))
    if opened is not None and opened.stripe_id:
        said(request, lambda: payout_account_sync(stripe_id=opened.stripe_id))
    return redirect("payouts")


@page("POST")
def ask(request: HttpRequest) -> HttpResponseBase:
    form = AmountForm(request.POST)
    if form.is_valid():
        said(
            request,
            lambda: payout_request(
                user=person(request),
                amount_microusd=form.amount_microusd,
                idempotency_key=form.cleaned_data["key"],
            ),
            done="Your payout is on its way.",
        )
    else:
        said_invalid(request, form)
    return redirect("payouts")


@page("POST")
def weekly(request: HttpRequest) -> HttpResponseBase:
    wanted = request.POST.get("weekly") == "yes"
    said(request, lambda: payout_account_weekly(user=person(request), weekly=wanted))
    return redirect("payouts")


@page("POST")
def send_again(request: HttpRequest, payout_id: UUID) -> HttpResponseBase:
    """The owner has put the bank details right."""
    payout = payout_of(person(request), payout_id)
    if payout_bank_retry(payout_id=payout.pk, now=utc_now()):
        messages.success(request, "It goes to your bank again.")
    return redirect("payouts")
