"""What the REST API reads and writes. These only parse; the services decide."""

from typing import Any

from rest_framework import serializers

from accounts.domain.scopes import SCOPES
from accounts.domain.windows import Window
from accounts.models import ApiToken, Device
from accounts.services.checks import NAME_MAX_LENGTH

TIME_FORMAT = "%H:%M"


class ErrorBody(serializers.Serializer[Any]):
    """Every failure of the API."""

    code = serializers.CharField(help_text="stable, for programs")
    message = serializers.CharField(help_text="one sentence, for people")
    field = serializers.CharField(allow_null=True, help_text="the input at fault, where there is one")


class ApiTokenOut(serializers.ModelSerializer[ApiToken]):
    class Meta:
        model = ApiToken
        fields = ["id", "name", "scopes", "hint", "created_at", "last_used_at"]
        read_only_fields = fields


class ApiTokenIn(serializers.Serializer[Any]):
    name = serializers.CharField(max_length=NAME_MAX_LENGTH)
    scopes = serializers.ListField(child=serializers.CharField(), help_text=f"some of {', '.join(SCOPES)}")


class ApiTokenCreated(ApiTokenOut):
    token = serializers.SerializerMethodField(help_text="the plain token; it is shown this once")

    class Meta(ApiTokenOut.Meta):
        fields = [*ApiTokenOut.Meta.fields, "token"]
        read_only_fields = fields

    def get_token(self, token: ApiToken) -> str:
        plain: str = self.context["plain"]
        return plain


class PolicySerializer(serializers.Serializer[Any]):
    battery_floor_percent = serializers.IntegerField(help_text="no work below this charge, 0 to 95")
    charging_only = serializers.BooleanField()
    wifi_only = serializers.BooleanField()
    too_hot_celsius = serializers.IntegerField(help_text="no work from this temperature on, 30 to 60")


class DeviceOut(serializers.ModelSerializer[Device]):
    policy = PolicySerializer(source="*")

    class Meta:
        model = Device
        fields = [
            "id",
            "name",
            "kind",
            "device_class",
            "state",
            "speed_factor",
            "paired_at",
            "last_seen_at",
            "policy",
        ]
        read_only_fields = fields


class DevicesCounted(serializers.Serializer[Any]):
    devices = serializers.IntegerField(
        help_text="how many were changed; those that were so already do not count"
    )


class DeviceRename(serializers.Serializer[Any]):
    name = serializers.CharField(max_length=NAME_MAX_LENGTH)


class WindowSerializer(serializers.Serializer[Window]):
    weekday = serializers.IntegerField(min_value=0, max_value=6, help_text="0 is Monday")
    starts = serializers.TimeField(format=TIME_FORMAT, input_formats=[TIME_FORMAT])
    ends = serializers.TimeField(
        format=TIME_FORMAT, input_formats=[TIME_FORMAT], help_text="at or before `starts`: on the next day"
    )


class WindowsSerializer(serializers.Serializer[Any]):
    windows = WindowSerializer(many=True)


class PairingCodeOut(serializers.Serializer[Any]):
    code = serializers.CharField(help_text="ABCD-EFGH; it is shown this once")
    expires_at = serializers.DateTimeField()


class PairIn(serializers.Serializer[Any]):
    code = serializers.CharField(max_length=20)
    public_key = serializers.RegexField("^[0-9a-f]{64}$", help_text="Ed25519, 32 bytes in lower-case hex")
    name = serializers.CharField(max_length=NAME_MAX_LENGTH)
    kind = serializers.CharField(help_text="phone, tablet or laptop")
    device_class = serializers.CharField()
    speed_factor = serializers.FloatField(default=1.0)


class PairOut(serializers.Serializer[Any]):
    device_id = serializers.UUIDField()
