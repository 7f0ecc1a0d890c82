"""The REST API of earnings and payouts."""

from django.urls import path

from billing.api import views

urlpatterns = [
    path("payouts/", views.PayoutsView.as_view(), name="api-payouts"),
    path("payouts/account/", views.AccountView.as_view(), name="api-payouts-account"),
    path("payouts/balances/", views.BalancesView.as_view(), name="api-payouts-balances"),
    path("payouts/earnings/", views.EarningsView.as_view(), name="api-payouts-earnings"),
    path("payouts/earnings.csv", views.EarningsCsvView.as_view(), name="api-payouts-earnings-csv"),
    path("payouts/estimate/", views.EstimateView.as_view(), name="api-payouts-estimate"),
    path("payouts/<uuid:payout_id>/", views.PayoutView.as_view(), name="api-payout"),
]
