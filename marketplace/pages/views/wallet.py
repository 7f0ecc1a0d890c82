"""Money of the person who is logged in."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from accounts.models import User
from marketplace.pages.money import wallet_view
from marketplace.pages.views.requests import page


@page("GET", "HEAD")
def wallet(request: HttpRequest, person: User) -> HttpResponse:
    return render(request, "marketplace/wallet.html", {"wallet": wallet_view(person)})
