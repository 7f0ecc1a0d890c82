"""The REST API of invoices: a buyer's own, to read."""

from typing import Any
from uuid import UUID

from django.http import HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.api.permissions import HasScope
from accounts.requests import person
from marketplace import selectors
from marketplace.api.base import failures
from marketplace.invoices.download import invoice_download
from marketplace.models import Invoice


class InvoiceLineOut(serializers.Serializer[Any]):
    round_number = serializers.IntegerField()
    device_class = serializers.CharField()
    gpu_us = serializers.IntegerField(help_text="metered GPU time of accepted results, in microseconds")
    rate_microusd = serializers.IntegerField(help_text="for a GPU-second")
    amount_microusd = serializers.IntegerField()


class InvoiceOut(serializers.ModelSerializer[Invoice]):
    number = serializers.CharField(read_only=True)
    job = serializers.UUIDField(source="job_id", read_only=True)

    class Meta:
        model = Invoice
        fields: tuple[str, ...] = (
            "id",
            "number",
            "issued_at",
            "job",
            "job_name",
            "total_microusd",
            "total_cents",
            "fee_microusd",
            "tax_name",
            "tax_basis_points",
            "tax_microusd",
        )
        read_only_fields = fields


class InvoiceDetailOut(InvoiceOut):
    lines = InvoiceLineOut(many=True, read_only=True)

    class Meta(InvoiceOut.Meta):
        fields = (*InvoiceOut.Meta.fields, "seller", "buyer_details", "tax_note", "lines")
        read_only_fields = fields


class InvoicesApi(APIView):
    permission_classes = [HasScope]
    required_scopes = ("money:read",)


class InvoicesView(InvoicesApi, ListAPIView[Invoice]):
    serializer_class = InvoiceOut

    def get_queryset(self) -> Any:
        return selectors.invoices_of(person(self.request))

    @extend_schema(operation_id="invoices_list", responses={200: InvoiceOut(many=True), **failures()})
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """Newest first. An invoice is issued when its job is settled, unless that cost nothing."""
        return super().get(request, *args, **kwargs)


class InvoiceView(InvoicesApi):
    @extend_schema(operation_id="invoices_show", responses={200: InvoiceDetailOut, **failures(404)})
    def get(self, request: Request, invoice_id: UUID) -> Response:
        return Response(InvoiceDetailOut(selectors.invoice_of(person(request), invoice_id)).data)


class InvoicePdfView(InvoicesApi):
    @extend_schema(
        operation_id="invoices_pdf",
        responses={(200, "application/pdf"): OpenApiTypes.BINARY, **failures(404)},
    )
    def get(self, request: Request, invoice_id: UUID) -> HttpResponseBase:
        return invoice_download(selectors.invoice_of(person(request), invoice_id))
