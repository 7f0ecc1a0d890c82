"""The REST API of what an owner's devices did: hour by hour, with what came in and why nothing did."""

from datetime import timedelta
from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api.views import OwnersView, parsed
from accounts.requests import person
from common.clock import utc_now
from marketplace.api.base import failures
from marketplace.nights.record import HOURS, OFFLINE, WORKING, Spent
from marketplace.nights.selectors import Night, device_night
from marketplace.pages.fleet import device_view

MAX_HOURS = 168  # a week


class ActivityQuery(serializers.Serializer[Any]):
    hours = serializers.IntegerField(
        min_value=1,
        max_value=MAX_HOURS,
        default=HOURS,
        help_text="how far back; the last hour has just begun",
    )


class ActivityHour(serializers.Serializer[Any]):
    starts_at = serializers.DateTimeField(help_text="in UTC; hours begin when the owner's clock strikes")
    ends_at = serializers.DateTimeField()
    seconds = serializers.DictField(
        child=serializers.IntegerField(),
        help_text=f"what the hour went to: `{WORKING}`, `free` (allowed to work, nothing to do), `{OFFLINE}`, "
        "or what kept the device from work, as `not_charging`; they add up to the hour",
    )
    earned_microusd = serializers.IntegerField(help_text="of results accepted in the hour, the fee taken")
    accepted = serializers.IntegerField(help_text="results accepted")
    failed = serializers.IntegerField(help_text="leases that came to nothing")


class ActivityExplanation(serializers.Serializer[Any]):
    code = serializers.CharField(help_text="stable, for programs")
    sentence = serializers.CharField()
    next_step = serializers.CharField(allow_blank=True, help_text="empty where there is nothing to do")


class ActivityOut(serializers.Serializer[Any]):
    device_id = serializers.UUIDField()
    time_zone = serializers.CharField(help_text="the owner's; IANA name")
    state = serializers.CharField(help_text="how the device is now, as its page says it")
    state_sentence = serializers.CharField()
    since = serializers.DateTimeField()
    until = serializers.DateTimeField()
    earned_microusd = serializers.IntegerField(
        help_text="in these hours; the ledger follows when rounds close"
    )
    earned_today_microusd = serializers.IntegerField(help_text="since the owner's midnight")
    earned_week_microusd = serializers.IntegerField(help_text="in the last seven days")
    accepted = serializers.IntegerField()
    failed = serializers.IntegerField()
    seconds = serializers.DictField(child=serializers.IntegerField())
    hours = ActivityHour(many=True)
    explanation = ActivityExplanation(
        allow_null=True, help_text="why nothing was earned; null if something was"
    )


class DeviceActivityView(OwnersView):
    @extend_schema(
        operation_id="devices_activity",
        parameters=[ActivityQuery],
        responses={200: ActivityOut, **failures(400, 404)},
    )
    def get(self, request: Request, device_id: UUID) -> Response:
        """What the device did hour by hour: the figures of its page."""
        hours = parsed(ActivityQuery(data=request.query_params))["hours"]
        owner, now = person(request), utc_now()
        night = device_night(owner=owner, device_id=device_id, now=now, hours=hours)
        view = device_view(owner=owner, device_id=device_id, now=now)
        body = {
            **_figures(night),
            "device_id": device_id,
            "time_zone": owner.time_zone,
            "state": view.words.badge,
            "state_sentence": view.words.sentence,
            "earned_today_microusd": view.activity.today_microusd,
            "earned_week_microusd": view.activity.week_microusd,
        }
        return Response(ActivityOut(body).data)


def _figures(night: Night) -> dict[str, Any]:
    record = night.record
    hours = [
        {
            "starts_at": hour.starts_at,
            "ends_at": hour.ends_at,
            "seconds": _seconds(hour.spent),
            "earned_microusd": hour.earned_microusd,
            "accepted": hour.accepted,
            "failed": hour.failed,
        }
        for hour in record.hours
    ]
    return {
        "since": record.since,
        "until": record.until,
        "earned_microusd": record.earned_microusd,
        "accepted": record.accepted,
        "failed": record.failed,
        "seconds": _seconds(record.spent),
        "hours": hours,
        "explanation": night.explanation,
    }


def _seconds(spent: Spent) -> dict[str, int]:
    """Whole seconds; what rounding leaves over goes to the largest part, so that they still add up."""
    whole = {what: int(time.total_seconds()) for what, time in spent.items()}
    left = int(sum(spent.values(), timedelta()).total_seconds()) - sum(whole.values())
    if whole:
        whole[max(whole, key=lambda what: whole[what])] += left
    return {what: seconds for what, seconds in sorted(whole.items()) if seconds}
