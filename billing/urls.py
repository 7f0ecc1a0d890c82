"""Where Stripe sends its events."""

from django.urls import path

from billing.webhooks.views import stripe_webhook

urlpatterns = [
    path("stripe/webhook/", stripe_webhook, name="stripe-webhook"),
]
