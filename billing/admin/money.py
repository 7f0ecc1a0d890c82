"""Money as operators see it: to read, never to edit; what they do is an action that calls one service.

Grants are made by `manage.py grant`, freezes of a person by `manage.py freeze`.
"""

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html_join
from django.utils.safestring import mark_safe

from billing.admin.actions import SeenThrough, WaitsForAnOperator, on_each
from billing.models import (
    Account,
    Dispute,
    Hold,
    Payout,
    PayoutAccount,
    PayoutStep,
    Posting,
    Refund,
    Standing,
    StripeCall,
    StripeEvent,
    TopUp,
    Transfer,
)
from billing.services import (
    payout_freeze,
    payout_look_again,
    payout_send_again,
    payout_unfreeze,
    refund_look_again,
    top_up_look_again,
)
from billing.webhooks.replaying import event_replay
from common.admin import ReadOnly
from common.clock import utc_now
from common.money import format_usd

KEY_SHOWN_CHARS = 24  # as much of an account's key as tells it from others of a list
LOOK_AGAIN = "Ask Stripe again now, where it never answered (give a reason)"


class PostingInline(ReadOnly, admin.TabularInline[Posting, Transfer]):
    model = Posting
    fields = ["account", "amount_microusd"]


@admin.register(Account)
class AccountAdmin(ReadOnly, admin.ModelAdmin[Account]):
    list_display = ["key", "kind", "user", "balance_microusd"]
    list_filter = ["kind"]
    list_select_related = ["user"]
    search_fields = ["key", "user__email"]


@admin.register(Transfer)
class TransferAdmin(ReadOnly, admin.ModelAdmin[Transfer]):
    list_display = ["created_at", "reason", "lines", "memo", "operator"]
    fields = ["created_at", "reason", "memo", "operator", "idempotency_key"]
    list_filter = ["reason"]
    list_select_related = ["operator"]
    search_fields = ["idempotency_key"]
    inlines = [PostingInline]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Transfer]:
        return super().get_queryset(request).prefetch_related("postings__account")

    @admin.display(description="what moved")
    def lines(self, transfer: Transfer) -> str:
        lines = sorted(transfer.postings.all(), key=lambda line: line.amount_microusd)
        return format_html_join(
            mark_safe("<br>"),
            "{} {}",
            ((format_usd(line.amount_microusd), _short(line.account.key)) for line in lines),
        )


@admin.register(Hold)
class HoldAdmin(ReadOnly, admin.ModelAdmin[Hold]):
    list_display = ["reference", "state", "amount_microusd", "left", "wallet", "created_at"]
    list_filter = ["state"]
    list_select_related = ["account", "wallet"]
    search_fields = ["reference"]

    @admin.display(ordering="account__balance_microusd")
    def left(self, hold: Hold) -> str:
        return format_usd(hold.account.balance_microusd)


class PayoutStepInline(ReadOnly, admin.TabularInline[PayoutStep, Payout]):
    model = PayoutStep
    fields = ["state", "because", "at"]


@admin.register(Payout)
class PayoutAdmin(SeenThrough, admin.ModelAdmin[Payout]):
    list_display = [
        "created_at",
        "user",
        "amount_microusd",
        "state",
        "why",
        "next_look",
    ]
    list_filter = [WaitsForAnOperator, "state", ("frozen_because", admin.EmptyFieldListFilter)]
    list_select_related = ["user"]
    search_fields = ["user__email", "transfer_id", "bank_payout_id"]
    inlines = [PayoutStepInline]
    actions = ["freeze", "unfreeze", "look_again", "send_to_bank_again"]

    @admin.display(description="why", ordering="because")
    def why(self, payout: Payout) -> str:
        return f"frozen: {payout.frozen_because}" if payout.frozen_because else payout.because

    @admin.action(description="Freeze: send it no further (give a reason)")
    def freeze(self, request: HttpRequest, queryset: QuerySet[Payout]) -> None:
        on_each(self, request, queryset, payout_freeze, "payout_id", now=utc_now())

    @admin.action(description="Lift its freeze (give a reason)")
    def unfreeze(self, request: HttpRequest, queryset: QuerySet[Payout]) -> None:
        on_each(self, request, queryset, payout_unfreeze, "payout_id", now=utc_now())

    @admin.action(description=LOOK_AGAIN)
    def look_again(self, request: HttpRequest, queryset: QuerySet[Payout]) -> None:
        on_each(self, request, queryset, payout_look_again, "payout_id", now=utc_now())

    @admin.action(description="Send to the bank again, where it refused (give a reason)")
    def send_to_bank_again(self, request: HttpRequest, queryset: QuerySet[Payout]) -> None:
        on_each(self, request, queryset, payout_send_again, "payout_id", now=utc_now())


@admin.register(StripeEvent)
class StripeEventAdmin(SeenThrough, admin.ModelAdmin[StripeEvent]):
    list_display = ["received_at", "state", "note", "next_look", "type", "object_id"]
    list_filter = [WaitsForAnOperator, "state", "type"]
    search_fields = ["event_id", "object_id"]
    actions = ["replay"]

    @admin.action(description="Handle again, unless it took effect (give a reason)")
    def replay(self, request: HttpRequest, queryset: QuerySet[StripeEvent]) -> None:
        on_each(self, request, queryset.order_by("occurred_at"), event_replay, "event_pk", now=utc_now())


@admin.register(StripeCall)
class StripeCallAdmin(ReadOnly, admin.ModelAdmin[StripeCall]):
    list_display = ["begun_at", "operation", "key", "state", "tries", "last_problem"]
    list_filter = ["state", "operation"]
    search_fields = ["key"]


@admin.register(TopUp)
class TopUpAdmin(SeenThrough, admin.ModelAdmin[TopUp]):
    list_display = [
        "created_at",
        "user",
        "amount_microusd",
        "refunded_microusd",
        "state",
        "because",
        "next_look",
    ]
    list_filter = [WaitsForAnOperator, "state", "automatic"]
    list_select_related = ["user"]
    search_fields = ["user__email", "payment_intent_id"]
    actions = ["look_again"]

    @admin.action(description=LOOK_AGAIN)
    def look_again(self, request: HttpRequest, queryset: QuerySet[TopUp]) -> None:
        on_each(self, request, queryset, top_up_look_again, "top_up_id", now=utc_now())


@admin.register(Refund)
class RefundAdmin(SeenThrough, admin.ModelAdmin[Refund]):
    list_display = ["created_at", "buyer", "amount_microusd", "state", "because", "next_look", "top_up"]
    list_filter = [WaitsForAnOperator, "state"]
    list_select_related = ["top_up__user"]
    search_fields = ["top_up__user__email", "stripe_id", "top_up__payment_intent_id"]
    actions = ["look_again"]

    @admin.display(ordering="top_up__user__email")
    def buyer(self, refund: Refund) -> str:
        return refund.top_up.user.email

    @admin.action(description=LOOK_AGAIN)
    def look_again(self, request: HttpRequest, queryset: QuerySet[Refund]) -> None:
        on_each(self, request, queryset, refund_look_again, "refund_id", now=utc_now())


@admin.register(Dispute)
class DisputeAdmin(ReadOnly, admin.ModelAdmin[Dispute]):
    list_display = [
        "stripe_id",
        "buyer",
        "amount_microusd",
        "from_wallet_microusd",
        "status",
        "withdrawn_at",
        "reinstated_at",
    ]
    list_filter = ["status"]
    list_select_related = ["top_up__user"]
    search_fields = ["stripe_id", "top_up__user__email", "top_up__payment_intent_id"]

    @admin.display(ordering="top_up__user__email")
    def buyer(self, dispute: Dispute) -> str:
        return dispute.top_up.user.email


@admin.register(PayoutAccount)
class PayoutAccountAdmin(ReadOnly, admin.ModelAdmin[PayoutAccount]):
    list_display = ["user", "country", "transfers_status", "status_code", "weekly", "heard_at"]
    list_filter = ["transfers_status", "country"]
    list_select_related = ["user"]
    search_fields = ["user__email", "stripe_id"]


@admin.register(Standing)
class StandingAdmin(ReadOnly, admin.ModelAdmin[Standing]):
    list_display = ["user", "wallet_frozen_because", "payouts_frozen_because"]
    list_select_related = ["user"]


def _short(key: str) -> str:
    return key if len(key) <= KEY_SHOWN_CHARS else f"{key[:KEY_SHOWN_CHARS]}…"
