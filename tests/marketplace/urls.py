"""The site as far as the buyer's API goes."""

from django.urls import include, path
from drf_spectacular.views import SpectacularAPIView

urlpatterns = [
    path("", include("blobs.urls")),
    path("api/", include("accounts.api.urls")),
    path("api/", include("marketplace.api.urls")),
    path("api/schema/", SpectacularAPIView.as_view(), name="api-schema"),
]
