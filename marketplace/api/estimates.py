"""The REST API of estimates, which anyone may ask."""

from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.throttling import AnonRateThrottle, UserRateThrottle
from rest_framework.views import APIView

from accounts.api.serializers import ErrorBody
from accounts.api.views import parsed
from accounts.domain.device_classes import DEVICE_CLASSES
from billing.domain.rates import DeviceEstimate
from common.clock import utc_now
from marketplace.estimates import owner_estimate


class _Strangers(AnonRateThrottle):
    scope = "estimates-strangers"
    rate = "60/min"


class _People(UserRateThrottle):
    scope = "estimates-people"
    rate = "60/min"


class DeviceEstimateIn(serializers.Serializer[DeviceEstimate]):
    device_class = serializers.CharField(max_length=20)
    hours = serializers.FloatField()


class DeviceEstimateOut(serializers.Serializer[DeviceEstimate]):
    device_class = serializers.CharField()
    hours = serializers.FloatField()
    rate_microusd_per_gpu_second = serializers.IntegerField(help_text="what a buyer pays")
    fee_basis_points = serializers.IntegerField(help_text="the platform's part of it")
    paid_share = serializers.FloatField(
        allow_null=True, help_text="of free time that was paid of late; null: not measured yet"
    )
    low_microusd = serializers.IntegerField(help_text="what the owner earns, the fee taken")
    high_microusd = serializers.IntegerField()
    basis = serializers.CharField(help_text="what the range rests on, for people")


class DeviceEstimateView(APIView):
    permission_classes = [AllowAny]
    throttle_classes = [_Strangers, _People]

    @extend_schema(
        operation_id="estimates_device",
        auth=[],
        parameters=[
            OpenApiParameter("device_class", str, required=True, enum=sorted(DEVICE_CLASSES)),
            OpenApiParameter("hours", float, required=True, description="of one night, at most 24"),
        ],
        responses={
            200: DeviceEstimateOut,
            400: OpenApiResponse(ErrorBody, description="An input cannot be used; `field` names it."),
            429: OpenApiResponse(
                ErrorBody, description="Asked too often; Retry-After says how long to wait."
            ),
        },
    )
    def get(self, request: Request) -> Response:
        """What a night of a device would bring its owner: a range, and what it rests on. Neither is a promise."""
        given = parsed(DeviceEstimateIn(data=request.query_params))
        return Response(DeviceEstimateOut(owner_estimate(**given, now=utc_now())).data)
