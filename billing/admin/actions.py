"""Actions on rows that an operator chooses, with a reason typed beside them."""

from collections.abc import Callable
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.helpers import ActionForm
from django.db.models import QuerySet
from django.http import HttpRequest

from accounts.requests import person
from billing.errors import BillingError


class ReasonForm(ActionForm):
    reason = forms.CharField(required=False, max_length=200, label="Reason:")


def on_each(
    page: admin.ModelAdmin[Any],
    request: HttpRequest,
    queryset: QuerySet[Any],
    act: Callable[..., object],
    id_name: str,
    **more: object,
) -> None:
    """Do it to each chosen row in turn, as this operator and for the reason given, and say how it went."""
    done = 0
    for row in queryset:
        done += attempt(
            page,
            request,
            lambda row=row: act(
                **{id_name: row.pk}, operator=person(request), reason=reason_of(request), **more
            ),  # type: ignore[misc]
        )
    if done:
        page.message_user(request, f"Done for {done} of {queryset.count()}; it is in the audit log.")


def attempt(page: admin.ModelAdmin[Any], request: HttpRequest, act: Callable[[], object]) -> bool:
    """Do it; a refusal is said on the page."""
    try:
        act()
    except BillingError as refusal:
        page.message_user(request, refusal.message, messages.ERROR)
        return False
    return True


def reason_of(request: HttpRequest) -> str:
    return request.POST.get("reason", "")
