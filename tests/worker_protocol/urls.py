"""The addresses that a device uses."""

from django.urls import include, path

urlpatterns = [
    path("", include("blobs.urls")),
    path("api/", include("accounts.api.urls")),
]
