"""The accounts' addresses, and empty pages under the names that the site's navigation uses."""

from django.http import HttpRequest, HttpResponse
from django.urls import include, path


def page(request: HttpRequest) -> HttpResponse:
    return HttpResponse("")


urlpatterns = [
    path("", include("accounts.urls")),
    path("api/", include("accounts.api.urls")),
    *(
        path(f"{name}/", page, name=name)
        for name in ("home", "jobs", "datasets", "devices", "wallet", "api-docs")
    ),
]
