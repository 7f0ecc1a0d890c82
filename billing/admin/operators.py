"""What operators correct, each time for a reason, and the log of it."""

from typing import Any
from urllib.parse import urlencode

from django import forms
from django.contrib import admin, messages
from django.db.models import OuterRef, QuerySet, Subquery
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect

from accounts.requests import person
from billing.admin.actions import ReasonForm, attempt, on_each, reason_of
from billing.admin.adjusting import AdjustmentForm, account_key_typed
from billing.errors import BillingError
from billing.models import Account, Adjustment, OperatorAction, Unmatched
from billing.services import (
    adjustment_approve,
    adjustment_create,
    adjustment_decline,
    unmatched_adjust,
    unmatched_ignore,
    unmatched_pair,
)
from common.admin import ReadOnly, usd_column
from common.clock import utc_now
from common.money import format_usd


@admin.register(OperatorAction)
class OperatorActionAdmin(ReadOnly, admin.ModelAdmin[OperatorAction]):
    fields = ["created_at", "operator", "action", "reason", "user", "subject", "what_changed"]
    readonly_fields = ["what_changed"]
    list_display = ["created_at", "operator", "action", "reason", "user", "what_changed"]
    list_filter = ["action"]
    list_select_related = ["operator", "user"]
    search_fields = ["subject", "user__email", "operator__email", "reason"]
    date_hierarchy = "created_at"

    @admin.display(description="what changed")
    def what_changed(self, line: OperatorAction) -> str:
        parts = []
        for name in dict.fromkeys([*line.before, *line.after]):
            if line.before.get(name) == line.after.get(name):
                continue
            before, after = (_in_words(name, side.get(name)) for side in (line.before, line.after))
            label = name.removesuffix("_microusd").replace("_", " ")
            parts.append(f"{label}: {after}" if name not in line.before else f"{label}: {before} → {after}")
        return "; ".join(parts)


def _in_words(name: str, value: object) -> str:
    if name.endswith("_microusd") and isinstance(value, int):
        return format_usd(value)
    return "nothing" if value in ("", None) else str(value)


@admin.register(Adjustment)
class AdjustmentAdmin(ReadOnly, admin.ModelAdmin[Adjustment]):
    """One is asked for here; above the site's limit it waits for another operator's approval."""

    form = AdjustmentForm
    list_display = [
        "created_at",
        "state",
        "amount_microusd",
        "taken_from",
        "goes_to",
        "reason",
        "operator",
        "decided_by",
    ]
    readonly_fields = ["taken_from", "goes_to"]
    list_filter = ["state"]
    list_select_related = ["operator", "decided_by"]
    search_fields = ["from_key", "to_key", "reason"]
    action_form = ReasonForm
    actions = ["approve", "decline"]

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return person(request).is_staff

    def get_queryset(self, request: HttpRequest) -> QuerySet[Adjustment]:
        def whose(key: str) -> Subquery:
            return Subquery(Account.objects.filter(key=OuterRef(key)).values("user__email")[:1])

        return super().get_queryset(request).annotate(from_email=whose("from_key"), to_email=whose("to_key"))

    @admin.display(description="from", ordering="from_key")
    def taken_from(self, adjustment: Adjustment) -> str:
        return _account_in_words(adjustment.from_key, getattr(adjustment, "from_email", None))

    @admin.display(description="to", ordering="to_key")
    def goes_to(self, adjustment: Adjustment) -> str:
        return _account_in_words(adjustment.to_key, getattr(adjustment, "to_email", None))

    def get_fields(self, request: HttpRequest, obj: Adjustment | None = None) -> list[Any]:
        if obj is None:
            return ["from_key", "to_key", "usd", "reason", "number"]
        return [*self.get_list_display(request), "decided_at"]

    def get_readonly_fields(self, request: HttpRequest, obj: Adjustment | None = None) -> list[Any]:
        return [] if obj is None else super().get_readonly_fields(request, obj)

    def add_view(self, request: HttpRequest, form_url: str = "", extra_context: Any = None) -> HttpResponse:
        """What only the posting finds out is said above the form, which keeps what was typed."""
        try:
            return super().add_view(request, form_url, extra_context)
        except BillingError as refusal:
            self.message_user(request, refusal.message, messages.ERROR)
            typed = {name: request.POST.get(name, "") for name in ("from_key", "to_key", "usd", "reason")}
            return HttpResponseRedirect(f"{request.path}?{urlencode(typed)}")

    def save_model(self, request: HttpRequest, obj: Adjustment, form: Any, change: bool) -> None:
        obj.pk, obj.amount_microusd = form.cleaned_data["number"], form.amount_microusd
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
    account = forms.CharField(
        required=False,
        max_length=80,
        label="Account, to adjust:",
        widget=forms.TextInput(attrs={"placeholder": "wallet:buyer@example.org"}),
    )


@admin.register(Unmatched)
class UnmatchedAdmin(ReadOnly, admin.ModelAdmin[Unmatched]):
    """What Stripe and the books say differently, as `manage.py reconcile_stripe` last found it."""

    list_display = [
        "moved_at",
        "state",
        "kind",
        usd_column("stripe_microusd", label="Stripe says", empty="nothing"),
        usd_column("ledger_microusd", label="the books say", empty="nothing"),
        "stripe_id",
        "ledger_key",
        "reason",
        "resolved_by",
    ]
    list_select_related = ["resolved_by"]
    list_filter = ["state", "kind"]
    search_fields = ["stripe_id", "ledger_key"]
    action_form = ResolveForm
    actions = ["pair", "adjust", "ignore"]

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
        account_key = account_key_typed(request.POST.get("account", ""))
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


def _account_in_words(key: str, email: str | None) -> str:
    return f"{key.partition(':')[0]} of {email}" if email else key
