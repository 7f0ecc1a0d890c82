"""The buyer's side in the admin site, for operators to look at; what changes it are its services."""

from django.contrib import admin

from common.admin import ReadOnly
from marketplace.models import Dataset, Invoice, InvoiceLine, Job


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


class InvoiceLineInline(ReadOnly, admin.TabularInline[InvoiceLine, Invoice]):
    model = InvoiceLine
    fields = ("round_number", "device_class", "gpu_us", "rate_microusd", "amount_microusd")


@admin.register(Invoice)
class InvoiceAdmin(ReadOnly, admin.ModelAdmin[Invoice]):
    list_display = (
        "number",
        "issued_at",
        "buyer",
        "job_name",
        "total_microusd",
        "fee_microusd",
        "tax_microusd",
    )
    list_filter = ("year",)
    list_select_related = ("buyer",)
    search_fields = ("buyer__email", "job__id", "sequence")
    inlines = (InvoiceLineInline,)
