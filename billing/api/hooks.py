"""The payouts API's hooks: where an owner's program is told of payouts, and the log of what it was told."""

from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api.views import parsed
from accounts.requests import person
from billing import selectors
from billing.api import serializers as s
from billing.api.views import Newest, PayoutsApi, failures
from billing.models import OwnerDelivery
from billing.services import owner_delivery_replay, owner_hook_create, owner_hook_delete


class HooksView(PayoutsApi):
    @extend_schema(operation_id="payouts_hooks_list", responses={200: s.HookOut(many=True), **failures()})
    def get(self, request: Request) -> Response:
        return Response(s.HookOut(selectors.owner_hooks_of(person(request)), many=True).data)

    @extend_schema(
        operation_id="payouts_hooks_create",
        request=s.HookIn,
        responses={201: s.HookCreated, **failures(400, 409)},
    )
    def post(self, request: Request) -> Response:
        """The address is told of each new state of a payout, signed with the secret that this answer shows."""
        hook = owner_hook_create(user=person(request), **parsed(s.HookIn(data=request.data)))
        headers = {"Cache-Control": "no-store"}
        return Response(s.HookCreated(hook).data, status=status.HTTP_201_CREATED, headers=headers)


class HookView(PayoutsApi):
    @extend_schema(operation_id="payouts_hooks_remove", responses={204: None, **failures(404)})
    def delete(self, request: Request, hook_id: UUID) -> Response:
        owner_hook_delete(user=person(request), hook_id=hook_id)
        return Response(status=status.HTTP_204_NO_CONTENT)


class DeliveriesView(PayoutsApi, ListAPIView[OwnerDelivery]):
    serializer_class = s.DeliveryOut
    pagination_class = Newest

    def get_queryset(self) -> Any:
        return selectors.owner_deliveries_of(person(self.request))

    @extend_schema(
        operation_id="payouts_deliveries_list", responses={200: s.DeliveryOut(many=True), **failures()}
    )
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        return super().get(request, *args, **kwargs)


class DeliveryReplayView(PayoutsApi):
    @extend_schema(
        operation_id="payouts_deliveries_replay",
        request=None,
        responses={202: s.DeliveryOut, **failures(404)},
    )
    def post(self, request: Request, delivery_id: UUID) -> Response:
        """Sends the same bytes once more, delivered or not."""
        delivery = owner_delivery_replay(user=person(request), delivery_id=delivery_id)
        return Response(s.DeliveryOut(delivery).data, status=status.HTTP_202_ACCEPTED)
