"""HTTP addresses of the fleet manager: none, for devices fetch and send blobs by signed addresses (see `blobs`)."""

from django.urls import URLPattern

urlpatterns: list[URLPattern] = []
