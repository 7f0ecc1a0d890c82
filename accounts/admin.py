"""The operator's view of people, their devices and tokens. What decides over work goes through the services."""

from typing import Any

from django.contrib import admin
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.forms import BaseUserCreationForm
from django.db.models import QuerySet
from django.http import HttpRequest

from accounts.models import ApiToken, Device, User
from accounts.services import api_token_revoke, device_pause, device_remove, device_resume


class AddPersonForm(BaseUserCreationForm[User]):
    class Meta:
        model = User
        fields = ("email", "time_zone")


@admin.register(User)
class PersonAdmin(UserAdmin[User]):
    """A person is shut out by taking `active` away; deleting one would take the past with them."""

    add_form = AddPersonForm
    list_display = ["email", "time_zone", "date_joined", "last_login", "is_active", "is_staff"]
    search_fields = ["email"]
    ordering = ["email"]
    fieldsets = [
        (None, {"fields": ["email", "password", "time_zone"]}),
        ("May", {"fields": ["is_active", "is_staff", "is_superuser", "groups"]}),
        ("Dates", {"fields": ["date_joined", "last_login"]}),
    ]
    add_fieldsets = [(None, {"fields": ["email", "time_zone", "password1", "password2"]})]
    readonly_fields = ["date_joined", "last_login"]
    filter_horizontal = ["groups"]

    def has_delete_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        return False


class ReadOnlyAdmin(admin.ModelAdmin[Any]):
    """Shows rows; only the actions change anything."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        return [name for name in self.fields or [] if isinstance(name, str)]


@admin.register(Device)
class DeviceAdmin(ReadOnlyAdmin):
    list_display = ["name", "owner", "kind", "device_class", "state", "last_seen_at"]
    list_filter = ["state", "kind", "device_class"]
    list_select_related = ["owner"]
    search_fields = ["name", "owner__email", "id"]
    fields = [
        *[
            "id",
            "name",
            "owner",
            "kind",
            "device_class",
            "speed_factor",
            "state",
            "paired_at",
            "last_seen_at",
        ],
        *["battery_floor_percent", "charging_only", "wifi_only", "too_hot_celsius"],
    ]
    actions = ["pause", "resume", "remove"]

    @admin.action(description="Pause", permissions=["change"])
    def pause(self, request: HttpRequest, devices: QuerySet[Device]) -> None:
        for device in _present(devices):
            device_pause(owner=device.owner, device_id=device.id)

    @admin.action(description="Resume", permissions=["change"])
    def resume(self, request: HttpRequest, devices: QuerySet[Device]) -> None:
        for device in _present(devices):
            device_resume(owner=device.owner, device_id=device.id)

    @admin.action(description="Remove for good", permissions=["change"])
    def remove(self, request: HttpRequest, devices: QuerySet[Device]) -> None:
        for device in _present(devices):
            device_remove(owner=device.owner, device_id=device.id)


@admin.register(ApiToken)
class ApiTokenAdmin(ReadOnlyAdmin):
    list_display = ["name", "user", "hint", "created_at", "last_used_at", "revoked_at"]
    list_select_related = ["user"]
    search_fields = ["name", "user__email"]
    fields = ["name", "user", "hint", "scopes", "created_at", "last_used_at", "revoked_at"]
    actions = ["revoke"]

    @admin.action(description="Revoke", permissions=["change"])
    def revoke(self, request: HttpRequest, tokens: QuerySet[ApiToken]) -> None:
        for token in tokens.select_related("user"):
            api_token_revoke(user=token.user, token_id=token.id)


def _present(devices: QuerySet[Device]) -> QuerySet[Device]:
    return devices.exclude(state=Device.State.REMOVED).select_related("owner")
