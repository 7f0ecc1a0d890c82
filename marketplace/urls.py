"""Every address of the site, app by app."""

from django.contrib import admin
from django.urls import include, path
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView

from marketplace.health import health

handler404 = "common.http.not_found"
handler500 = "common.http.server_error"

urlpatterns = [
    path("admin/", admin.site.urls),
    path("healthz/", health, name="health"),
    path("", include("accounts.urls")),
    path("", include("blobs.urls")),
    path("", include("billing.urls")),
    path("", include("marketplace.pages.urls")),
    path("", include("worker_protocol.urls")),
    path("api/", include("accounts.api.urls")),
    path("api/", include("billing.api.urls")),
    path("api/", include("marketplace.api.urls")),
    path("api/schema/", SpectacularAPIView.as_view(), name="api-schema"),
    path(
        "api/docs/",
        # It has no template to answer OPTIONS with.
        SpectacularSwaggerSplitView.as_view(url_name="api-schema", http_method_names=["get", "head"]),
        name="api-docs",
    ),
]
