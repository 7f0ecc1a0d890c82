"""The addresses that a device uses, and the worker's files with a page that starts it, from one origin."""

import tempfile
from pathlib import Path

from django.http import Http404, HttpRequest, HttpResponse
from django.urls import include, path
from django.views.static import serve

from worker_protocol.self_test import self_test_open

HERE = Path(__file__).parent
STATIC = HERE.parents[2] / "worker_protocol" / "static"
# Kept from one run of the tests to the next, as making it takes long; its key is its makers' text.
SELF_TEST_FOLDER = Path(tempfile.gettempdir()) / "nightshift-self-test"


def manifest(_request: HttpRequest) -> HttpResponse:
    return HttpResponse(self_test_open(SELF_TEST_FOLDER).manifest, content_type="application/json")


def file(_request: HttpRequest, sha256: str) -> HttpResponse:
    data = self_test_open(SELF_TEST_FOLDER).files.get(sha256)
    if data is None:
        raise Http404
    return HttpResponse(data, content_type="application/octet-stream")


urlpatterns = [
    path("", include("tests.worker_protocol.urls")),
    path("device/self-test.json", manifest),
    path("device/self-test/<str:sha256>", file),
    path("static/<path:path>", serve, {"document_root": STATIC}),
    path("phone/<path:path>", serve, {"document_root": HERE}),
]
