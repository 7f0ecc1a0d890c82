"""Read-only lists for operators: what trains, what waits and why, which device fails."""

from typing import Any

from django.contrib import admin

from common.admin import ReadOnly
from scheduler.models import DispatcherLock, Inbox, Lease, Round, Run, Standing


class StateMachineAdmin(ReadOnly, admin.ModelAdmin[Any]):
    """The state machine alone writes these rows; a change by hand would contradict its memory."""


@admin.register(Run)
class RunAdmin(StateMachineAdmin):
    list_display = (
        "id", "buyer_id", "state", "waiting", "ended_because", "spent_microusd", "budget_microusd", "created_at"
    )  # fmt: skip
    list_filter = ("state", "waiting", "ended_because")
    search_fields = ("id",)
    ordering = ("-created_at",)


@admin.register(Round)
class RoundAdmin(StateMachineAdmin):
    list_display = (
        "run_id", "index", "state", "opened_at", "deadline_at", "closed_at", "validation_loss", "validation_metric"
    )  # fmt: skip
    list_filter = ("state",)
    search_fields = ("run__id",)
    ordering = ("-opened_at",)


@admin.register(Lease)
class LeaseAdmin(StateMachineAdmin):
    list_display = (
        "id", "device_id", "shard_id", "state", "reason", "step", "granted_at", "deadline_at", "ended_at",
        "charge_microusd",
    )  # fmt: skip
    list_filter = ("state", "reason", "device_class")
    search_fields = ("id", "device_id", "shard__round__run__id")
    ordering = ("-granted_at",)


@admin.register(Standing)
class StandingAdmin(StateMachineAdmin):
    list_display = ("device_id", "failures_in_a_row", "benched_until", "pace")
    search_fields = ("device_id",)
    ordering = ("-failures_in_a_row",)


@admin.register(DispatcherLock)
class DispatcherLockAdmin(StateMachineAdmin):
    list_display = ("name", "holder", "expires_at")


@admin.register(Inbox)
class InboxAdmin(StateMachineAdmin):
    list_display = ("id", "kind", "payload", "created_at")
