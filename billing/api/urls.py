"""The REST API of earnings and payouts."""

from django.urls import path

from billing.api import automatic, hooks, views

urlpatterns = [
    path("wallet/auto-top-up/", automatic.AutoTopUpView.as_view(), name="api-auto-top-up"),
    path("payouts/", views.PayoutsView.as_view(), name="api-payouts"),
    path("payouts/account/", views.AccountView.as_view(), name="api-payouts-account"),
    path("payouts/balances/", views.BalancesView.as_view(), name="api-payouts-balances"),
    path("payouts/earnings/", views.EarningsView.as_view(), name="api-payouts-earnings"),
    path("payouts/earnings.csv", views.EarningsCsvView.as_view(), name="api-payouts-earnings-csv"),
    path("payouts/estimate/", views.EstimateView.as_view(), name="api-payouts-estimate"),
    path("payouts/hooks/", hooks.HooksView.as_view(), name="api-payouts-hooks"),
    path("payouts/hooks/<uuid:hook_id>/", hooks.HookView.as_view(), name="api-payouts-hook"),
    path("payouts/deliveries/", hooks.DeliveriesView.as_view(), name="api-payouts-deliveries"),
    path(
        "payouts/deliveries/<uuid:delivery_id>/replay/",
        hooks.DeliveryReplayView.as_view(),
        name="api-payouts-delivery-replay",
    ),
    path("payouts/<uuid:payout_id>/", views.PayoutView.as_view(), name="api-payout"),
]
