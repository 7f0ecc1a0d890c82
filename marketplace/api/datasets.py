"""The REST API of datasets."""

from pathlib import PurePath
from typing import Any
from uuid import UUID

from django.conf import settings
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.generics import ListAPIView
from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api.views import parsed
from accounts.requests import person
from marketplace import selectors
from marketplace.api.base import DatasetsApi, failures
from marketplace.api.serializers import DatasetIn, DatasetOut
from marketplace.datasets.services import dataset_delete, dataset_upload
from marketplace.errors import DatasetTooLarge
from marketplace.models import Dataset

# Beside the file: the form's other fields and its boundaries.
FORM_BYTES = 64 * 1024


class DatasetsView(DatasetsApi, ListAPIView[Dataset]):
    parser_classes = [MultiPartParser]
    serializer_class = DatasetOut

    def get_queryset(self) -> Any:
        return selectors.datasets_of(person(self.request))

    @extend_schema(operation_id="datasets_list", responses={200: DatasetOut(many=True), **failures()})
    def get(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        return super().get(request, *args, **kwargs)

    @extend_schema(
        operation_id="datasets_upload",
        request={"multipart/form-data": DatasetIn},
        responses={201: DatasetOut, 200: DatasetOut, **failures(400, 409, 413)},
    )
    def post(self, request: Request) -> Response:
        """201 for a new dataset; 200 with the one that there is, if the same data was uploaded before."""
        _refuse_oversize(request)
        form = parsed(DatasetIn(data=request.data))
        file = form.pop("file")
        dataset, is_new = dataset_upload(
            owner=person(request),
            name=form.pop("name", PurePath(file.name).stem[:100]),
            file=file,
            file_name=file.name,
            **form,
        )
        code = status.HTTP_201_CREATED if is_new else status.HTTP_200_OK
        return Response(DatasetOut(dataset).data, status=code)


class DatasetView(DatasetsApi):
    @extend_schema(operation_id="datasets_show", responses={200: DatasetOut, **failures(404)})
    def get(self, request: Request, dataset_id: UUID) -> Response:
        return Response(DatasetOut(selectors.dataset_of(person(request), dataset_id)).data)

    @extend_schema(operation_id="datasets_delete", responses={204: None, **failures(404, 409)})
    def delete(self, request: Request, dataset_id: UUID) -> Response:
        dataset_delete(owner=person(request), dataset_id=dataset_id)
        return Response(status=status.HTTP_204_NO_CONTENT)


def _refuse_oversize(request: Request) -> None:
    """Before the body is parsed, by the length that it declares."""
    declared = request.META.get("CONTENT_LENGTH") or "0"
    limit_bytes = settings.MAX_DATASET_BYTES
    if declared.isdecimal() and int(declared) > limit_bytes + FORM_BYTES:
        raise DatasetTooLarge(
            f"file: over the limit of {limit_bytes:,} bytes. Upload fewer rows.", field="file"
        )
