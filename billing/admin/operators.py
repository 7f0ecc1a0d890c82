"""What operators correct, each time for a reason, and the log of it."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect

from accounts.requests import person
from billing.admin.actions import ReasonForm, attempt, on_each, reason_of
from billing.errors import BillingError
from billing.models import Adjustment, OperatorAction, Unmatched
from billing.services import (
    adjustment_approve,
    adjustment_create,
    adjustment_decline,
    unmatched_adjust,
    unmatched_ignore,
    unmatched_pair,
)
from common.admin import ReadOnly
from common.clock import utc_now
from common.money import format_usd


@admin.register(OperatorAction)
class OperatorActionAdmin(ReadOnly, admin.ModelAdmin[OperatorAction]):
    list_display = ["created_at", "operator", "action", "user", "subject", "reason", "before", "after"]
    list_filter = ["action"]
    list_select_related = ["operator", "user"]
    search_fields = ["subject", "user__email", "operator__email", "reason"]


@admin.register(Adjustment)
class AdjustmentAdmin(ReadOnly, admin.ModelAdmin[Adjustment]):
    """One is asked for here; above the site's limit it waits for another operator's approval."""

    fields = ["from_key", "to_key", "amount_microusd", "reason"]
    list_display = ["created_at", "operator", "from_key", "to_key", "amount", "reason", "state", "decided_by"]
    list_filter = ["state"]
    list_select_related = ["operator", "decided_by"]
    search_fields = ["from_key", "to_key", "reason"]
    action_form = ReasonForm
    actions = ["approve", "decline"]

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return person(request).is_staff

    @admin.display(ordering="amount_microusd")
    def amount(self, adjustment: Adjustment) -> str:
        return format_usd(adjustment.amount_microusd)

    def add_view(self, request: HttpRequest, form_url: str = "", extra_context: Any = None) -> HttpResponse:
        try:
            return super().add_view(request, form_url, extra_context)
        except BillingError as refusal:
            self.message_user(request, refusal.message, messages.ERROR)
            return HttpResponseRedirect(request.path)

    def save_model(self, request: HttpRequest, obj: Adjustment, form: Any, change: bool) -> None:
        made = adjustment_create(
            operator=person(request),
            adjustment_id=obj.pk,
            from_key=obj.from_key,
            to_key=obj.to_key,
            amount_microusd=obj.amount_microusd,
            reason=obj.reason,
        )
        if made.state == Adjustment.State.WAITING:
            self.message_user(request, "It waits for another operator to approve it.", messages.WARNING)

    @admin.action(description="Approve what another operator asked for (give a reason)")
    def approve(self, request: HttpRequest, queryset: QuerySet[Adjustment]) -> None:
        on_each(self, request, queryset, adjustment_approve, "adjustment_id", now=utc_now())

    @admin.action(description="Decline, or take back (give a reason)")
    def decline(self, request: HttpRequest, queryset: QuerySet[Adjustment]) -> None:
        on_each(self, request, queryset, adjustment_decline, "adjustment_id", now=utc_now())


class ResolveForm(ReasonForm):
    account = forms.CharField(required=False, max_length=80, label="Account, to adjust:")


@admin.register(Unmatched)
class UnmatchedAdmin(ReadOnly, admin.ModelAdmin[Unmatched]):
    """What Stripe and the books say differently, as `manage.py reconcile_stripe` last found it."""

    list_display = ["moved_at", "kind", "stripe_id", "stripe", "ledger_key", "books", "state", "reason"]
    list_filter = ["state", "kind"]
    search_fields = ["stripe_id", "ledger_key"]
    action_form = ResolveForm
    actions = ["pair", "adjust", "ignore"]

    @admin.display(description="Stripe says", ordering="stripe_microusd")
    def stripe(self, row: Unmatched) -> str:
        return _amount(row.stripe_microusd)

    @admin.display(description="the books say", ordering="ledger_microusd")
    def books(self, row: Unmatched) -> str:
        return _amount(row.ledger_microusd)

    @admin.action(description="Pair the two chosen: the same money (give a reason)")
    def pair(self, request: HttpRequest, queryset: QuerySet[Unmatched]) -> None:
        ids = list(queryset.values_list("pk", flat=True))
        if len(ids) != 2:
            self.message_user(request, "Choose the two that belong together.", messages.ERROR)
        elif attempt(
            self,
            request,
            lambda: unmatched_pair(
                one_id=ids[0], other_id=ids[1], operator=person(request), reason=reason_of(request)
            ),
        ):
            self.message_user(request, "They are a pair; it is in the audit log.")

    @admin.action(description="Adjust the books to Stripe, from or to the account (give both)")
    def adjust(self, request: HttpRequest, queryset: QuerySet[Unmatched]) -> None:
        account_key = request.POST.get("account", "").strip()
        on_each(
            self,
            request,
            queryset,
            unmatched_adjust,
            "unmatched_id",
            account_key=account_key,
            now=utc_now(),
        )

    @admin.action(description="Ignore: right as it is (give a reason)")
    def ignore(self, request: HttpRequest, queryset: QuerySet[Unmatched]) -> None:
        on_each(self, request, queryset, unmatched_ignore, "unmatched_id")


def _amount(microusd: int | None) -> str:
    return "nothing" if microusd is None else format_usd(microusd)
