"""Pages of people: sign-up, log-in, settings. Each parses, calls one service, renders."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any, TypeVar

from django import forms
from django.contrib import messages
from django.contrib.auth import login
from django.contrib.auth import views as auth_views
from django.contrib.auth.decorators import login_required
from django.core.exceptions import NON_FIELD_ERRORS
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from accounts import selectors, services
from accounts.attempts import AttemptLimit
from accounts.errors import InputError, LimitError, TooManySignUps
from accounts.forms import ApiTokenForm, InvoiceAddressForm, LogInForm, SignUpForm, TimeZoneForm
from accounts.models import User
from accounts.requests import client_address, person
from common.http import STATUS_BY_CODE

T = TypeVar("T")

SIGN_UPS = AttemptLimit("sign-up", attempts=20, per=timedelta(days=1))
# Whoever asks, so that nobody's mailbox is filled from here.
RESET_MAILS = AttemptLimit("password-reset", attempts=5, per=timedelta(hours=1))


@sensitive_post_parameters("password")
@require_http_methods(["GET", "POST"])
def sign_up(request: HttpRequest) -> HttpResponse:
    if request.user.is_authenticated:
        return redirect("home")
    form = SignUpForm(request.POST or None)
    if request.method == "POST" and (user := _done(form, partial(_sign_up, client_address(request)))):
        login(request, user)
        return redirect("home")
    return render(request, "accounts/sign_up.html", {"form": form}, status=_status_of(form))


def _sign_up(address: str, **given: str) -> User:
    """Counted by client, so that no one fills the site with people. An attempt that fails does not count."""
    if not SIGN_UPS.take(address):
        raise TooManySignUps("Too many people have signed up from your address today. Try again tomorrow.")
    try:
        return services.user_sign_up(**given)
    except InputError:
        SIGN_UPS.give_back(address)
        raise


class LogInView(auth_views.LoginView):
    template_name = "accounts/log_in.html"
    authentication_form = LogInForm
    redirect_authenticated_user = True


class PasswordResetView(auth_views.PasswordResetView):
    template_name = "accounts/password_reset.html"
    email_template_name = "accounts/password_reset_email.txt"
    subject_template_name = "accounts/password_reset_subject.txt"
    success_url = reverse_lazy("password-reset-sent")

    def form_valid(self, form: Any) -> HttpResponse:
        """Past the bound nothing is sent, and nothing said: the links sent before still work."""
        if RESET_MAILS.take(form.cleaned_data["email"].lower()):
            return super().form_valid(form)
        return redirect(self.success_url)


class PasswordResetSentView(auth_views.PasswordResetDoneView):
    template_name = "accounts/password_reset_sent.html"


class PasswordResetConfirmView(auth_views.PasswordResetConfirmView):
    template_name = "accounts/password_reset_confirm.html"
    success_url = reverse_lazy("login")

    def form_valid(self, form: Any) -> HttpResponse:
        messages.success(self.request, "Your password is changed. Log in with the new one.")
        return super().form_valid(form)


class PasswordChangeView(auth_views.PasswordChangeView):
    template_name = "accounts/password_change.html"
    success_url = reverse_lazy("settings")

    def form_valid(self, form: Any) -> HttpResponse:
        messages.success(self.request, "Your password is changed.")
        return super().form_valid(form)


@login_required
@require_GET
def settings(request: HttpRequest) -> HttpResponse:
    return _settings_page(request)


@login_required
@require_POST
def set_time_zone(request: HttpRequest) -> HttpResponse:
    form = TimeZoneForm(request.POST)
    if _done(form, lambda **given: services.user_set_time_zone(user=person(request), **given)):
        messages.success(request, "Your time zone is saved; idle windows follow it from now on.")
        return redirect("settings")
    return _settings_page(request, time_zone_form=form)


@login_required
@require_POST
def set_invoice_address(request: HttpRequest) -> HttpResponse:
    form = InvoiceAddressForm(request.POST)
    if _done(form, lambda **given: services.user_set_invoice_address(user=person(request), **given)):
        messages.success(request, "Saved; your next invoices carry it.")
        return redirect("settings")
    return _settings_page(request, invoice_address_form=form)


@login_required
@require_POST
@never_cache
def create_token(request: HttpRequest) -> HttpResponse:
    """Shows the plain token in this one answer; nothing keeps it."""
    form = ApiTokenForm(request.POST)
    if made := _done(form, lambda **given: services.api_token_create(user=person(request), **given)):
        token, plain = made
        return render(request, "accounts/token_created.html", {"token": token, "plain": plain})
    return _settings_page(request, token_form=form)


@login_required
@require_POST
def revoke_token(request: HttpRequest, token_id: int) -> HttpResponse:
    services.api_token_revoke(user=person(request), token_id=token_id)
    messages.success(request, "The token is revoked.")
    return redirect("settings")


def _settings_page(
    request: HttpRequest,
    *,
    time_zone_form: forms.Form | None = None,
    invoice_address_form: forms.Form | None = None,
    token_form: forms.Form | None = None,
) -> HttpResponse:
    user = person(request)
    time_zone_form = time_zone_form or TimeZoneForm(initial={"time_zone": user.time_zone})
    invoice_address_form = invoice_address_form or InvoiceAddressForm(
        initial={"invoice_address": user.invoice_address}
    )
    token_form = token_form or ApiTokenForm()
    context = {
        "time_zone_form": time_zone_form,
        "invoice_address_form": invoice_address_form,
        "token_form": token_form,
        "tokens": selectors.api_tokens_of(user),
    }
    status = max(map(_status_of, (time_zone_form, invoice_address_form, token_form)))
    return render(request, "accounts/settings.html", context, status=status)


def _done(form: forms.Form, service: Callable[..., T]) -> T | None:
    """What the service makes of a valid form; None, with the form saying why, if either refuses."""
    if not form.is_valid():
        return None
    try:
        return service(**form.cleaned_data)
    except (InputError, LimitError, TooManySignUps) as error:
        form.add_error(error.field, forms.ValidationError(error.message, code=error.code))
        return None


def _status_of(form: forms.Form) -> int:
    if form.has_error(NON_FIELD_ERRORS, TooManySignUps.code):
        return STATUS_BY_CODE[TooManySignUps.code]
    return 400 if form.errors else 200
