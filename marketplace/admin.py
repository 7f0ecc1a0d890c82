"""The buyer's side in the admin site, for operators to look at; what changes it are its services."""

from django.contrib import admin

from common.admin import ReadOnly
from marketplace.models import Dataset, Job


@admin.register(Dataset)
class DatasetAdmin(ReadOnly, admin.ModelAdmin[Dataset]):
    list_display = ("name", "owner", "task", "rows", "size_bytes", "created_at")
    list_filter = ("task",)
    search_fields = ("name", "owner__email", "sha256")
    date_hierarchy = "created_at"


@admin.register(Job)
class JobAdmin(ReadOnly, admin.ModelAdmin[Job]):
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
