"""The REST API of the catalogue, of jobs and of the wallet."""

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from django.http import HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import status
from rest_framework.generics import ListAPIView
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.permissions import IsAuthenticated
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.api.permissions import HasScope
from accounts.api.views import parsed
from accounts.requests import person
from billing.models import Account
from billing.selectors import earnings_balance, statement, wallet_balance
from marketplace import selectors
from marketplace.api import serializers as s
from marketplace.api.base import JobsApi, failures
from marketplace.api.downloads import model_download
from marketplace.catalogue.specs import catalogue_schema
from marketplace.jobs.services import job_cancel, job_confirm, job_create
from marketplace.jobs.settings import settings_parse
from marketplace.models import Job


class ModelsView(APIView):
    permission_classes = [IsAuthenticated]

    @extend_schema(operation_id="models_list", responses={200: s.ModelKind(many=True), **failures()})
    def get(self, request: Request) -> Response:
        """The catalogue: each kind of model with the JSON schema of its parameters."""
        return Response(catalogue_schema())


class JobsView(JobsApi, ListAPIView[Job]):
    serializer_class = s.JobOut

    def get_queryset(self) -> Any:
        return selectors.jobs_of(person(self.request))

    @extend_schema(operation_id="jobs_list", responses={200: s.JobOut(many=True), **failures()})
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        return super().get(request, *args, **kwargs)

    @extend_schema(
        operation_id="jobs_create", request=s.JobIn, responses={201: s.JobOut, **failures(400, 404, 409)}
    )
    def post(self, request: Request) -> Response:
        """Checks the job and quotes it. Nothing is held or run until it is confirmed."""
        form = parsed(s.JobIn(data=request.data))
        dataset_id = form.pop("dataset")
        job = job_create(owner=person(request), dataset_id=dataset_id, settings=settings_parse(form))
        return Response(s.JobOut(job).data, status=status.HTTP_201_CREATED)


class JobView(JobsApi):
    @extend_schema(operation_id="jobs_show", responses={200: s.JobDetailOut, **failures(404)})
    def get(self, request: Request, job_id: UUID) -> Response:
        return _detail(selectors.job_of(person(request), job_id))


class JobConfirmView(JobsApi):
    @extend_schema(
        operation_id="jobs_confirm",
        request=None,
        responses={200: s.JobDetailOut, **failures(402, 404, 409, 410)},
    )
    def post(self, request: Request, job_id: UUID) -> Response:
        """Accepts the quote: funds are held and the job starts. Confirming twice is confirming once."""
        return _detail(job_confirm(owner=person(request), job_id=job_id))


class JobCancelView(JobsApi):
    @extend_schema(
        operation_id="jobs_cancel", request=None, responses={200: s.JobDetailOut, **failures(404, 409)}
    )
    def post(self, request: Request, job_id: UUID) -> Response:
        """Stops the job. Work accepted so far is paid, the rest of the hold returns."""
        return _detail(job_cancel(owner=person(request), job_id=job_id))


class JobRoundsView(JobsApi):
    @extend_schema(operation_id="jobs_rounds", responses={200: s.RoundOut(many=True), **failures(404)})
    def get(self, request: Request, job_id: UUID) -> Response:
        view = selectors.job_view(selectors.job_of(person(request), job_id))
        return Response(s.RoundOut(view.rounds, many=True).data)


class _IgnoreFormat(DefaultContentNegotiation):
    """`format` in the query names the model's format here, not a renderer."""

    def select_renderer(
        self, request: Request, renderers: Iterable[BaseRenderer], format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        renderer = next(iter(renderers))
        return renderer, renderer.media_type


class JobModelView(JobsApi):
    content_negotiation_class = _IgnoreFormat

    @extend_schema(
        operation_id="jobs_model",
        parameters=[OpenApiParameter("format", str, enum=["safetensors", "pt2"], default="pt2")],
        responses={(200, "application/octet-stream"): OpenApiTypes.BINARY, **failures(404, 409)},
    )
    def get(self, request: Request, job_id: UUID) -> HttpResponseBase:
        """The trained model: parameters as safetensors, or a program for torch.export.load."""
        job = selectors.job_of(person(request), job_id)
        return model_download(request._request, job, request.query_params.get("format", "pt2"))


class WalletView(APIView):
    permission_classes = [HasScope]
    required_scopes = ("money:read",)

    @extend_schema(operation_id="wallet_show", responses={200: s.WalletOut, **failures()})
    def get(self, request: Request) -> Response:
        """Balances, and the latest lines of both statements."""
        user = person(request)
        body = {
            "wallet_microusd": wallet_balance(user),
            "earnings_microusd": earnings_balance(user),
            "wallet_statement": statement(user, Account.Kind.WALLET),
            "earnings_statement": statement(user, Account.Kind.EARNINGS),
        }
        return Response(s.WalletOut(body).data)


def _detail(job: Job) -> Response:
    return Response(s.JobDetailOut(selectors.job_view(job)).data)
