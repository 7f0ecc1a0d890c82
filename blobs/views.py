"""Blobs over HTTP: read by range at a signed address, uploaded in one part or in many at another.

An address is all the authorisation there is: no cookie counts here, and so no CSRF check is due.
"""

import os
from typing import BinaryIO, cast

from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse, StreamingHttpResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods, require_safe

from blobs.errors import BlobNotFound, RangeNotSatisfiable, UploadGap, UploadHeaderInvalid
from blobs.ranges import ByteRange, parse_content_range, parse_range
from blobs.selectors import blob_open
from blobs.store import is_sha256
from blobs.streaming import AsyncFilePart, FilePart
from blobs.tokens import UploadGrant, read_grant, upload_grant
from blobs.uploads import upload_offset, upload_receive
from common.clock import utc_now
from common.http import json_error

# Content under a hash never changes.
CACHE_FOR_EVER = "private, max-age=31536000, immutable"


@require_safe
def blob_read(request: HttpRequest, sha256: str) -> HttpResponseBase:
    """GET or HEAD of one blob: whole, one range of it, or 'not modified'."""
    grant = read_grant(request.GET.get("token", ""), now=utc_now())
    if grant.sha256 != sha256:
        raise BlobNotFound
    file = blob_open(sha256)
    try:
        response = _blob_response(request, file, etag=f'"{sha256}"')
    except RangeNotSatisfiable as error:
        response = json_error(error)
        response["Content-Range"] = f"bytes */{error.size_bytes}"
    if not response.streaming:
        file.close()
    return response


@csrf_exempt
@require_http_methods(["HEAD", "PUT"])
def blob_upload(request: HttpRequest) -> HttpResponse:
    """PUT the next part of an upload (201 once it is stored, 202 before), or HEAD to ask how far it is."""
    grant = upload_grant(request.GET.get("token", ""), now=utc_now())
    if request.method == "HEAD":
        return HttpResponse(
            headers={"Upload-Offset": upload_offset(grant.subject), "Cache-Control": "no-store"}
        )
    try:
        return _part_received(request, grant)
    except UploadGap as error:
        response = json_error(error)
        response["Upload-Offset"] = error.offset
        return response


def _blob_response(request: HttpRequest, file: BinaryIO, *, etag: str) -> HttpResponseBase:
    headers = {
        "Accept-Ranges": "bytes",
        "Cache-Control": CACHE_FOR_EVER,
        "ETag": etag,
        "X-Content-Type-Options": "nosniff",
    }
    if _matches(request.headers.get("If-None-Match", ""), etag):
        return HttpResponse(status=304, headers=headers)
    part, status = _part_asked_for(request, total=os.fstat(file.fileno()).st_size, etag=etag)
    headers |= {"Content-Length": str(part.length), "Content-Type": "application/octet-stream"}
    if status == 206:
        headers["Content-Range"] = part.content_range
    if request.method == "HEAD":
        return HttpResponse(status=status, headers=headers)
    file.seek(part.first)
    content = FilePart(file, length=part.length)
    is_async = isinstance(request, ASGIRequest)
    return StreamingHttpResponse(
        AsyncFilePart(content) if is_async else content, status=status, headers=headers
    )


def _part_asked_for(request: HttpRequest, *, total: int, etag: str) -> tuple[ByteRange, int]:
    """The bytes to send, and the status to send them with."""
    header = request.headers.get("Range")
    if request.headers.get("If-Range", etag) != etag:
        header = None
    part = parse_range(header, total=total)
    return (part, 206) if part else (ByteRange(0, total, total), 200)


def _matches(if_none_match: str, etag: str) -> bool:
    """RFC 9110, 13.1.2: a list of tags compared weakly, or an asterisk."""
    tags = [tag.strip().removeprefix("W/") for tag in if_none_match.split(",")]
    return etag in tags or tags == ["*"]


def _part_received(request: HttpRequest, grant: UploadGrant) -> HttpResponse:
    sha256 = request.headers.get("X-Content-SHA256", "").lower()
    if not is_sha256(sha256):
        raise UploadHeaderInvalid(
            "X-Content-SHA256 must be the SHA-256 of the whole content in 64 hex digits.",
            field="X-Content-SHA256",
        )
    progress = upload_receive(
        grant=grant, sha256=sha256, part=_part_sent(request), data=cast(BinaryIO, request), now=utc_now()
    )
    headers = {"Upload-Offset": str(progress.received_bytes)}
    if progress.is_stored:
        return JsonResponse(
            {"sha256": sha256, "size_bytes": progress.total_bytes}, status=201, headers=headers
        )
    return JsonResponse({"upload_offset": progress.received_bytes}, status=202, headers=headers)


def _part_sent(request: HttpRequest) -> ByteRange:
    """Which bytes of the content the request's body is: all of them, unless Content-Range says otherwise."""
    length_text = request.headers.get("Content-Length", "")
    if not (length_text.isascii() and length_text.isdigit()):
        raise UploadHeaderInvalid("Content-Length must say how many bytes are sent.", field="Content-Length")
    length = int(length_text)
    header = request.headers.get("Content-Range")
    if header is None:
        return ByteRange(0, length, length)
    part = parse_content_range(header)
    if part is None or part.length != length:
        raise UploadHeaderInvalid(
            f"Content-Range must be like 'bytes 0-{max(length, 1) - 1}/{length}' and agree with Content-Length.",
            field="Content-Range",
        )
    return part
