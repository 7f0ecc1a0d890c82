"""What the devices of the person who is logged in have earned."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from accounts.models import User
from common.clock import utc_now
from marketplace.pages.earnings import earnings_view
from marketplace.pages.views.requests import page


@page("GET", "HEAD")
def earnings(request: HttpRequest, person: User) -> HttpResponse:
    return render(
        request, "marketplace/earnings.html", {"earnings": earnings_view(owner=person, now=utc_now())}
    )
