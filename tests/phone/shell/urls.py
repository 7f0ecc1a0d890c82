"""The site's addresses, with a played worker in the app's place."""

from pathlib import Path

from django.http import HttpRequest, HttpResponse
from django.urls import include, path

FAKE_WORKER = Path(__file__).with_name("fake_worker.js")


def fake_worker(request: HttpRequest) -> HttpResponse:
    return HttpResponse(FAKE_WORKER.read_text(), content_type="text/javascript")


urlpatterns = [path("device/worker.js", fake_worker), path("", include("marketplace.urls"))]
