"""Paying in: the list of top-ups, each one's page, and refunds."""

from uuid import UUID

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render

from accounts.requests import person
from billing.models import TopUp
from billing.pages.forms import AmountForm
from billing.pages.requests import page, said, said_invalid, tried
from billing.selectors import refundable_microusd, top_up_of, top_ups_of, wallet_balance
from billing.services import refund_create, top_up_create

SHOWN = 50


@page("GET", "HEAD", "POST")
def payments(request: HttpRequest) -> HttpResponseBase:
    user = person(request)
    form = AmountForm(request.POST if request.method == "POST" else None)
    status = 200
    if request.method == "POST":
        made, status = tried(
            form,
            lambda: top_up_create(
                user=user, amount_microusd=form.amount_microusd, idempotency_key=form.cleaned_data["key"]
            ),
        )
        if made is not None:
            return redirect("top-up", made.pk)
    context = {
        "takes_money": bool(settings.STRIPE_SECRET_KEY),
        "form": form,
        "top_ups": top_ups_of(user)[:SHOWN],
        "balance_microusd": wallet_balance(user),
    }
    return render(request, "billing/payments.html", context, status=status)


@page("GET", "HEAD")
def top_up(request: HttpRequest, top_up_id: UUID) -> HttpResponseBase:
    """Where Stripe sends the buyer back to, too; the payment itself is told of by an event."""
    shown = top_up_of(person(request), top_up_id)
    context = {
        "top_up": shown,
        "refunds": shown.refunds.all(),
        "refundable_microusd": refundable_microusd(shown),
        "form": AmountForm(),
        "is_open": shown.state == TopUp.State.OPEN,
    }
    return render(request, "billing/top_up.html", context)


@page("POST")
def refund(request: HttpRequest, top_up_id: UUID) -> HttpResponseBase:
    user = person(request)
    form = AmountForm(request.POST)
    top_up_of(user, top_up_id)
    if form.is_valid():
        said(
            request,
            lambda: refund_create(
                user=user,
                top_up_id=top_up_id,
                amount_microusd=form.amount_microusd,
                idempotency_key=form.cleaned_data["key"],
            ),
            done="The refund is on its way to the card.",
        )
    else:
        said_invalid(request, form)
    return redirect("top-up", top_up_id)
