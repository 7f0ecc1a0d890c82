"""The REST API of tokens, devices, idle windows and pairing."""

from django.urls import URLPattern, URLResolver

urlpatterns: list[URLPattern | URLResolver] = []
