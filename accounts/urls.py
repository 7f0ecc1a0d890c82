"""Pages of people: sign-up, log-in, password, settings."""

from django.contrib.auth.views import LogoutView
from django.urls import path

from accounts import views

urlpatterns = [
    path("sign-up/", views.sign_up, name="sign-up"),
    path("log-in/", views.LogInView.as_view(), name="login"),
    path("log-out/", LogoutView.as_view(), name="logout"),
    path("password/reset/", views.PasswordResetView.as_view(), name="password-reset"),
    path("password/reset/sent/", views.PasswordResetSentView.as_view(), name="password-reset-sent"),
    path(
        "password/reset/<uidb64>/<token>/",
        views.PasswordResetConfirmView.as_view(),
        name="password-reset-confirm",
    ),
    path("password/change/", views.PasswordChangeView.as_view(), name="password-change"),
    path("settings/", views.settings, name="settings"),
    path("settings/time-zone/", views.set_time_zone, name="settings-time-zone"),
    path("settings/invoice-address/", views.set_invoice_address, name="settings-invoice-address"),
    path("settings/tokens/", views.create_token, name="settings-token-create"),
    path("settings/tokens/<int:token_id>/revoke/", views.revoke_token, name="settings-token-revoke"),
]
