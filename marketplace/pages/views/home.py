"""The front page: what Nightshift is, for those who do not know it yet."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe

from accounts.models import User
from accounts.selectors import devices_of
from marketplace.selectors import jobs_of


@require_safe
def home(request: HttpRequest) -> HttpResponse:
    """Strangers read what this is; people go to what concerns them."""
    if not isinstance(request.user, User):
        return render(request, "marketplace/home.html")
    owns_only = devices_of(request.user).exists() and not jobs_of(request.user).exists()
    return redirect("devices" if owns_only else "jobs")
