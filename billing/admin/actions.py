"""Actions on rows that an operator chooses, with a reason typed beside them."""

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.helpers import ActionForm
from django.contrib.messages.storage.base import Message
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.formats import date_format
from django.utils.timezone import localtime

from accounts.requests import person
from billing.errors import BillingError
from billing.services import GIVEN_UP
from common.admin import ReadOnly


class ReasonForm(ActionForm):
    reason = forms.CharField(required=False, max_length=200, label="Reason:")


class WaitsForAnOperator(admin.SimpleListFilter):
    """Of a list with a row in `GIVEN_UP`: what nobody looks at any more, though it is not over."""

    title = "whether it waits for you"
    parameter_name = "waits"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("yes", "It was given up")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(GIVEN_UP[queryset.model]) if self.value() == "yes" else queryset


class SeenThrough(ReadOnly):
    """A list of what the site sees through by itself, until it gives up: then an operator acts, for a reason."""

    action_form = ReasonForm

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows: QuerySet[Any] = super().get_queryset(request)  # type: ignore[misc]
        watched: QuerySet[Any] = rows.annotate(is_given_up=GIVEN_UP[rows.model])
        return watched

    @admin.display(description="next look", ordering="next_try_at")
    def next_look(self, row: Any) -> str:
        tried = f" after {row.tries} {'try' if row.tries == 1 else 'tries'}" if row.tries else ""
        if row.next_try_at is not None:
            return f"{date_format(localtime(row.next_try_at), 'DATETIME_FORMAT')}{tried}"
        return f"given up{tried}" if row.is_given_up else "-"


def on_each(
    page: admin.ModelAdmin[Any],
    request: HttpRequest,
    queryset: QuerySet[Any],
    act: Callable[..., object],
    id_name: str,
    **more: object,
) -> None:
    """Do it to each chosen row in turn, as this operator and for the reason given, and say how it went.

    An act that answers False had nothing to do.
    """
    went: Counter[bool | None] = Counter()
    for pk in list(queryset.values_list("pk", flat=True)):
        given = {id_name: pk, "operator": person(request), "reason": reason_of(request), **more}
        went[attempt(page, request, partial(act, **given))] += 1
    if went[True]:
        page.message_user(request, f"Done for {went[True]} of {went.total()}; it is in the audit log.")
    if went[False]:
        page.message_user(request, f"There was nothing to do for {went[False]} of them.", messages.WARNING)


def attempt(page: admin.ModelAdmin[Any], request: HttpRequest, act: Callable[[], object]) -> bool | None:
    """Do it: whether there was anything to do. None for a refusal, which is said on the page, once."""
    try:
        return act() is not False
    except BillingError as refusal:
        if Message(messages.ERROR, refusal.message) not in messages.get_messages(request):
            page.message_user(request, refusal.message, messages.ERROR)
        return None


def reason_of(request: HttpRequest) -> str:
    return request.POST.get("reason", "")
