"""Pages of people: sign-up, log-in, password, settings."""

from django.urls import URLPattern, URLResolver

urlpatterns: list[URLPattern | URLResolver] = []
