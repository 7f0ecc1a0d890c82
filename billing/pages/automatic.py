"""Automatic top-up: its terms, the card that is saved for it, and the way out."""

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render

from accounts.requests import person
from billing.models import AutoTopUp
from billing.pages.forms import AutoTopUpForm
from billing.pages.requests import page, said, tried
from billing.selectors import auto_top_up_of, auto_top_up_spent_microusd
from billing.services import auto_top_up_set, auto_top_up_stop
from common.clock import utc_now
from common.money import MICROUSD_PER_USD

FIRST_TERMS = {"threshold": 10, "amount": 25, "cap": 100}


@page("GET", "HEAD", "POST")
def automatic(request: HttpRequest) -> HttpResponseBase:
    """Where Stripe sends the buyer back to, too, once a card is saved; that is told of by an event."""
    user = person(request)
    auto = auto_top_up_of(user)
    form = AutoTopUpForm(request.POST if request.method == "POST" else None, initial=_terms_shown(auto))
    status = 200
    if request.method == "POST":
        made, status = tried(
            form, lambda: auto_top_up_set(user=user, terms=form.terms, agreed=form.cleaned_data["agreed"])
        )
        if made is not None:
            return redirect(made.set_up_url or "automatic")
    context = {
        "takes_money": bool(settings.STRIPE_SECRET_KEY),
        "form": form,
        "auto": auto,
        "is_on": auto is not None and auto.state == AutoTopUp.State.ON,
        "spent_microusd": auto_top_up_spent_microusd(user, now=utc_now()),
    }
    return render(request, "billing/automatic.html", context, status=status)


@page("POST")
def stop(request: HttpRequest) -> HttpResponseBase:
    forgets_card = request.POST.get("card") == "remove"
    words = "Your card is removed, and nothing is charged by itself." if forgets_card else "It is off."
    said(request, lambda: auto_top_up_stop(user=person(request), forgets_card=forgets_card), done=words)
    return redirect("automatic")


def _terms_shown(auto: AutoTopUp | None) -> dict[str, object]:
    if auto is None:
        return dict(FIRST_TERMS)
    microusd = {
        "threshold": auto.threshold_microusd,
        "amount": auto.amount_microusd,
        "cap": auto.monthly_cap_microusd,
    }
    return {name: f"{amount / MICROUSD_PER_USD:.2f}" for name, amount in microusd.items()}
