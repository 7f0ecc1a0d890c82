"""The ledger as operators see it: to read, never to edit. Grants are made by `manage.py grant`."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from billing.models import Account, Hold, Posting, Transfer
from common.money import format_usd


class ReadOnly:
    """Takes adding, changing and deleting away from an admin page."""

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class PostingInline(ReadOnly, admin.TabularInline[Posting, Transfer]):
    model = Posting
    fields = ["account", "amount_microusd"]


@admin.register(Account)
class AccountAdmin(ReadOnly, admin.ModelAdmin[Account]):
    list_display = ["key", "kind", "user", "balance"]
    list_filter = ["kind"]
    list_select_related = ["user"]
    search_fields = ["key", "user__email"]

    @admin.display(ordering="balance_microusd")
    def balance(self, account: Account) -> str:
        return format_usd(account.balance_microusd)


@admin.register(Transfer)
class TransferAdmin(ReadOnly, admin.ModelAdmin[Transfer]):
    list_display = ["created_at", "reason", "idempotency_key", "asked", "memo", "operator"]
    list_filter = ["reason"]
    list_select_related = ["operator"]
    search_fields = ["idempotency_key"]
    inlines = [PostingInline]


@admin.register(Hold)
class HoldAdmin(ReadOnly, admin.ModelAdmin[Hold]):
    list_display = ["reference", "state", "amount", "left", "wallet", "created_at"]
    list_filter = ["state"]
    list_select_related = ["account", "wallet"]
    search_fields = ["reference"]

    @admin.display(ordering="amount_microusd")
    def amount(self, hold: Hold) -> str:
        return format_usd(hold.amount_microusd)

    @admin.display(ordering="account__balance_microusd")
    def left(self, hold: Hold) -> str:
        return format_usd(hold.account.balance_microusd)
