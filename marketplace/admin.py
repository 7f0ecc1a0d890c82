"""The buyer's side in the admin site, for operators to look at; what changes it are its services."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from marketplace.models import Dataset, Job


class _ReadOnly(admin.ModelAdmin[Any]):
    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False


@admin.register(Dataset)
class DatasetAdmin(_ReadOnly):
    list_display = ("name", "owner", "task", "rows", "size_bytes", "created_at")
    list_filter = ("task",)
    search_fields = ("name", "owner__email", "sha256")
    date_hierarchy = "created_at"


@admin.register(Job)
class JobAdmin(_ReadOnly):
    list_display = (
        "name",
        "owner",
        "state",
        "ended_because",
        "hold_microusd",
        "run_id",
        "confirmed_at",
        "ended_at",
    )
    list_filter = ("state", "ended_because")
    search_fields = ("name", "owner__email", "id", "run_id")
    date_hierarchy = "created_at"
