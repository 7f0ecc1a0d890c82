"""Pages of real money, and where Stripe sends its events."""

from django.urls import path

from billing.pages import automatic, payments, payouts
from billing.webhooks.views import stripe_webhook

urlpatterns = [
    path("payments/", payments.payments, name="payments"),
    path("payments/top-ups/<uuid:top_up_id>/", payments.top_up, name="top-up"),
    path("payments/top-ups/<uuid:top_up_id>/refund/", payments.refund, name="top-up-refund"),
    path("payments/automatic/", automatic.automatic, name="automatic"),
    path("payments/automatic/stop/", automatic.stop, name="automatic-stop"),
    path("payouts/", payouts.payouts, name="payouts"),
    path("payouts/account/", payouts.account, name="payout-account"),
    path("payouts/refresh/", payouts.set_up, name="payout-set-up"),
    path("payouts/return/", payouts.come_back, name="payout-return"),
    path("payouts/ask/", payouts.ask, name="payout-ask"),
    path("payouts/weekly/", payouts.weekly, name="payout-weekly"),
    path("payouts/<uuid:payout_id>/again/", payouts.send_again, name="payout-again"),
    path("stripe/webhook/", stripe_webhook, name="stripe-webhook"),
]
