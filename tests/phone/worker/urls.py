"""The addresses that a device uses, and the worker's files with a page that starts it, from one origin."""

from pathlib import Path

from django.urls import include, path
from django.views.static import serve

HERE = Path(__file__).parent
STATIC = HERE.parents[2] / "worker_protocol" / "static"

urlpatterns = [
    path("", include("tests.worker_protocol.urls")),
    path("static/<path:path>", serve, {"document_root": STATIC}),
    path("phone/<path:path>", serve, {"document_root": HERE}),
]
