"""What the payouts API reads and writes. These only parse; the services decide. Amounts are micro-USD."""

from typing import Any

from rest_framework import serializers

from billing.models import OwnerDelivery, OwnerHook, Payout, PayoutStep

KEY_HEADER = "Idempotency-Key"


class BalancesOut(serializers.Serializer[Any]):
    maturing_microusd = serializers.IntegerField(help_text="earned, and still held back")
    available_microusd = serializers.IntegerField(help_text="can be paid out now")
    on_the_way_microusd = serializers.IntegerField(help_text="asked for, and not at the bank yet")
    paid_microusd = serializers.IntegerField(help_text="paid out, ever")
    next_matures_at = serializers.DateTimeField(allow_null=True)


class EarningsQuery(serializers.Serializer[Any]):
    since = serializers.DateField(required=False, help_text="first day, in UTC")
    until = serializers.DateField(required=False, help_text="last day, in UTC")
    device = serializers.UUIDField(required=False)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if "since" in attrs and "until" in attrs and attrs["since"] > attrs["until"]:
            raise serializers.ValidationError({"until": "must not be before `since`."})
        return attrs


class EarningOut(serializers.Serializer[Any]):
    day = serializers.DateField()
    device_id = serializers.UUIDField(allow_null=True)
    charges = serializers.IntegerField(help_text="results that were paid for")
    gross_microusd = serializers.IntegerField()
    fee_microusd = serializers.IntegerField(source="deducted_microusd")
    net_microusd = serializers.IntegerField()


class PayoutStepOut(serializers.ModelSerializer[PayoutStep]):
    class Meta:
        model = PayoutStep
        fields = ["state", "because", "at"]
        read_only_fields = fields


class PayoutOut(serializers.ModelSerializer[Payout]):
    net_microusd = serializers.IntegerField(help_text="what reaches the bank, before its exchange")

    class Meta:
        model = Payout
        fields = [
            "id",
            "state",
            "because",
            "frozen_because",
            "amount_microusd",
            "fee_microusd",
            "net_microusd",
            "currency",
            "created_at",
        ]
        read_only_fields = fields


class PayoutDetailOut(PayoutOut):
    steps = PayoutStepOut(many=True)

    class Meta(PayoutOut.Meta):
        fields = [*PayoutOut.Meta.fields, "steps"]
        read_only_fields = fields


class PayoutIn(serializers.Serializer[Any]):
    amount_microusd = serializers.IntegerField(help_text="whole cents: a multiple of 10,000")
    currency = serializers.CharField(
        default="usd", help_text="usd; the bank's own currency is Stripe's business"
    )


class EstimateQuery(serializers.Serializer[Any]):
    amount_microusd = serializers.IntegerField(
        required=False, min_value=1, help_text="all that is available, if none"
    )


class EstimateOut(serializers.Serializer[Any]):
    gross_microusd = serializers.IntegerField()
    fee_microusd = serializers.IntegerField()
    net_microusd = serializers.IntegerField()
    possible = serializers.BooleanField(help_text="whether such a payout would be taken now")
    because = serializers.CharField(allow_blank=True, help_text="why not, for the owner to read")


class AccountOut(serializers.Serializer[Any]):
    country = serializers.CharField(allow_null=True)
    status = serializers.CharField()
    words = serializers.CharField(help_text="what to do next, for the owner to read")
    weekly = serializers.BooleanField()
    weekly_note = serializers.CharField(allow_blank=True)


class HookIn(serializers.Serializer[Any]):
    url = serializers.CharField(max_length=300, help_text="https, on the public internet")


class HookOut(serializers.ModelSerializer[OwnerHook]):
    class Meta:
        model = OwnerHook
        fields = ["id", "url", "created_at"]
        read_only_fields = fields


class HookCreated(HookOut):
    class Meta(HookOut.Meta):
        fields = [*HookOut.Meta.fields, "secret"]
        read_only_fields = fields


class DeliveryOut(serializers.ModelSerializer[OwnerDelivery]):
    url = serializers.CharField(source="hook.url")

    class Meta:
        model = OwnerDelivery
        fields = [
            "id",
            "url",
            "type",
            "state",
            "tries",
            "last_answer",
            "next_try_at",
            "created_at",
            "delivered_at",
        ]
        read_only_fields = fields
