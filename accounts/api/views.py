"""The REST API of tokens, devices, idle windows and pairing: parse, call one service, answer."""

from typing import Any
from uuid import UUID

from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import status
from rest_framework.generics import ListAPIView
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts import selectors, services
from accounts.api import serializers as s
from accounts.api.permissions import HasScope, IsPerson
from accounts.domain.windows import Window
from accounts.errors import TooManyPairingAttempts
from accounts.models import Device
from accounts.requests import client_address, person
from accounts.services.pairing import WRONG_CODES


def failures(*codes: int) -> dict[int, OpenApiResponse]:
    """The answers other than success that a view's description names."""
    words = {
        400: "An input cannot be used; `field` names it.",
        401: "Not signed in.",
        403: "The token lacks the scope.",
        404: "There is no such object of yours.",
        409: "It clashes with what there is, or a bound is reached.",
        410: "The pairing code has expired or been used.",
        429: "Too many wrong pairing codes; Retry-After says how many seconds to wait.",
    }
    return {code: OpenApiResponse(s.ErrorBody, description=words[code]) for code in codes}


SIGNED_IN = (401, 403)


def parsed(serializer: Any) -> dict[str, Any]:
    serializer.is_valid(raise_exception=True)
    data: dict[str, Any] = serializer.validated_data
    return data


class ApiTokensView(APIView):
    """API tokens; only a person may see or make them, never another token."""

    permission_classes = [IsPerson]

    @extend_schema(
        operation_id="tokens_list", responses={200: s.ApiTokenOut(many=True), **failures(*SIGNED_IN)}
    )
    def get(self, request: Request) -> Response:
        return Response(s.ApiTokenOut(selectors.api_tokens_of(person(request)), many=True).data)

    @extend_schema(
        operation_id="tokens_create",
        request=s.ApiTokenIn,
        responses={201: s.ApiTokenCreated, **failures(400, 409, *SIGNED_IN)},
    )
    def post(self, request: Request) -> Response:
        token, plain = services.api_token_create(
            user=person(request), **parsed(s.ApiTokenIn(data=request.data))
        )
        body = s.ApiTokenCreated(token, context={"plain": plain}).data
        return Response(body, status=status.HTTP_201_CREATED, headers={"Cache-Control": "no-store"})


class ApiTokenView(APIView):
    permission_classes = [IsPerson]

    @extend_schema(operation_id="tokens_revoke", responses={204: None, **failures(404, *SIGNED_IN)})
    def delete(self, request: Request, token_id: int) -> Response:
        services.api_token_revoke(user=person(request), token_id=token_id)
        return Response(status=status.HTTP_204_NO_CONTENT)


class OwnersView(APIView):
    """Base of what owners see and change of their devices."""

    permission_classes = [HasScope]
    required_scopes = ("devices:read", "devices:write")


class DevicesView(ListAPIView[Device]):
    permission_classes = [HasScope]
    required_scopes = ("devices:read", "devices:write")
    serializer_class = s.DeviceOut

    def get_queryset(self) -> Any:
        return selectors.devices_of(person(self.request))

    @extend_schema(
        operation_id="devices_list", responses={200: s.DeviceOut(many=True), **failures(*SIGNED_IN)}
    )
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        return super().get(request, *args, **kwargs)


class DeviceView(OwnersView):
    @extend_schema(operation_id="devices_show", responses={200: s.DeviceOut, **failures(404, *SIGNED_IN)})
    def get(self, request: Request, device_id: UUID) -> Response:
        return Response(s.DeviceOut(selectors.device_of(person(request), device_id)).data)

    @extend_schema(
        operation_id="devices_rename",
        request=s.DeviceRename,
        responses={200: s.DeviceOut, **failures(400, 404, *SIGNED_IN)},
    )
    def patch(self, request: Request, device_id: UUID) -> Response:
        name = parsed(s.DeviceRename(data=request.data))["name"]
        device = services.device_rename(owner=person(request), device_id=device_id, name=name)
        return Response(s.DeviceOut(device).data)

    @extend_schema(operation_id="devices_remove", responses={204: None, **failures(404, *SIGNED_IN)})
    def delete(self, request: Request, device_id: UUID) -> Response:
        services.device_remove(owner=person(request), device_id=device_id)
        return Response(status=status.HTTP_204_NO_CONTENT)


class DevicePauseView(OwnersView):
    @extend_schema(
        operation_id="devices_pause",
        request=None,
        responses={200: s.DeviceOut, **failures(404, *SIGNED_IN)},
    )
    def post(self, request: Request, device_id: UUID) -> Response:
        device = services.device_pause(owner=person(request), device_id=device_id)
        return Response(s.DeviceOut(device).data)


class DeviceResumeView(OwnersView):
    @extend_schema(
        operation_id="devices_resume",
        request=None,
        responses={200: s.DeviceOut, **failures(404, *SIGNED_IN)},
    )
    def post(self, request: Request, device_id: UUID) -> Response:
        device = services.device_resume(owner=person(request), device_id=device_id)
        return Response(s.DeviceOut(device).data)


class DevicesPauseAllView(OwnersView):
    @extend_schema(
        operation_id="devices_pause_all",
        request=None,
        responses={200: s.DevicesCounted, **failures(*SIGNED_IN)},
    )
    def post(self, request: Request) -> Response:
        """All of the owner's devices stop at once and get no work until they are resumed."""
        return Response({"devices": services.devices_pause_all(owner=person(request))})


class DevicesResumeAllView(OwnersView):
    @extend_schema(
        operation_id="devices_resume_all",
        request=None,
        responses={200: s.DevicesCounted, **failures(*SIGNED_IN)},
    )
    def post(self, request: Request) -> Response:
        return Response({"devices": services.devices_resume_all(owner=person(request))})


class DevicePolicyView(OwnersView):
    @extend_schema(
        operation_id="devices_policy_show", responses={200: s.PolicySerializer, **failures(404, *SIGNED_IN)}
    )
    def get(self, request: Request, device_id: UUID) -> Response:
        return Response(s.PolicySerializer(selectors.device_of(person(request), device_id)).data)

    @extend_schema(
        operation_id="devices_policy_replace",
        request=s.PolicySerializer,
        responses={200: s.PolicySerializer, **failures(400, 404, *SIGNED_IN)},
    )
    def put(self, request: Request, device_id: UUID) -> Response:
        policy = parsed(s.PolicySerializer(data=request.data))
        device = services.device_set_policy(owner=person(request), device_id=device_id, **policy)
        return Response(s.PolicySerializer(device).data)


class CommonWindowsView(OwnersView):
    """The idle windows of all devices that have none of their own."""

    @extend_schema(operation_id="windows_show", responses={200: s.WindowsSerializer, **failures(*SIGNED_IN)})
    def get(self, request: Request) -> Response:
        return windows_response(selectors.common_windows_of(person(request)))

    @extend_schema(
        operation_id="windows_replace",
        request=s.WindowsSerializer,
        responses={200: s.WindowsSerializer, **failures(400, *SIGNED_IN)},
    )
    def put(self, request: Request) -> Response:
        services.idle_windows_replace(owner=person(request), device_id=None, windows=windows_in(request))
        return windows_response(selectors.common_windows_of(person(request)))


class DeviceWindowsView(OwnersView):
    """A device's own idle windows; none, and the common ones apply to it."""

    @extend_schema(
        operation_id="devices_windows_show", responses={200: s.WindowsSerializer, **failures(404, *SIGNED_IN)}
    )
    def get(self, request: Request, device_id: UUID) -> Response:
        return windows_response(selectors.windows_of_device(selectors.device_of(person(request), device_id)))

    @extend_schema(
        operation_id="devices_windows_replace",
        request=s.WindowsSerializer,
        responses={200: s.WindowsSerializer, **failures(400, 404, *SIGNED_IN)},
    )
    def put(self, request: Request, device_id: UUID) -> Response:
        services.idle_windows_replace(owner=person(request), device_id=device_id, windows=windows_in(request))
        return windows_response(selectors.windows_of_device(selectors.device_of(person(request), device_id)))


def windows_in(request: Request) -> list[Window]:
    rows = parsed(s.WindowsSerializer(data=request.data))["windows"]
    return [Window(**row) for row in rows]


def windows_response(windows: list[Window]) -> Response:
    return Response(s.WindowsSerializer({"windows": windows}).data)


class PairingCodesView(OwnersView):
    @extend_schema(
        operation_id="pairing_codes_create",
        request=None,
        responses={201: s.PairingCodeOut, **failures(409, *SIGNED_IN)},
    )
    def post(self, request: Request) -> Response:
        row, code = services.pairing_code_create(owner=person(request))
        body = s.PairingCodeOut({"code": code, "expires_at": row.expires_at}).data
        return Response(body, status=status.HTTP_201_CREATED, headers={"Cache-Control": "no-store"})


class PairView(APIView):
    """Where a new device, which nobody knows yet, answers with the code that its owner has shown it."""

    authentication_classes = []
    permission_classes = [AllowAny]

    @extend_schema(
        operation_id="devices_pair",
        request=s.PairIn,
        responses={201: s.PairOut, **failures(400, 409, 410, 429)},
    )
    def post(self, request: Request) -> Response:
        facts = parsed(s.PairIn(data=request.data))
        facts["public_key"] = bytes.fromhex(facts["public_key"])
        device = services.device_pair(**facts, client_address=client_address(request))
        return Response({"device_id": str(device.id)}, status=status.HTTP_201_CREATED)

    def handle_exception(self, exc: Exception) -> Response:
        response = super().handle_exception(exc)
        if isinstance(exc, TooManyPairingAttempts):
            response["Retry-After"] = str(round(WRONG_CODES.per.total_seconds()))
        return response
