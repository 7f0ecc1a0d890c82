"""Sending a trained model, from the API and from pages."""

import os

from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, HttpResponseBase, StreamingHttpResponse
from django.utils.http import content_disposition_header
from django.utils.text import slugify

from blobs.selectors import blob_open
from blobs.streaming import AsyncFilePart, FilePart
from marketplace.models import Job
from marketplace.selectors import job_model_sha256


def model_file_name(job: Job, model_format: str) -> str:
    return f"{slugify(job.name) or 'model'}.{model_format}"


def model_download(request: HttpRequest, job: Job, model_format: str) -> HttpResponseBase:
    """The model as an attachment, streamed. Raises ModelNotReady."""
    file = blob_open(job_model_sha256(job, model_format))
    length = os.fstat(file.fileno()).st_size
    part = FilePart(file, length=length)
    return StreamingHttpResponse(
        AsyncFilePart(part) if isinstance(request, ASGIRequest) else part,
        content_type="application/octet-stream",
        headers={
            "Content-Length": str(length),
            "Content-Disposition": content_disposition_header(True, model_file_name(job, model_format))
            or "attachment",
            "X-Content-Type-Options": "nosniff",
        },
    )
