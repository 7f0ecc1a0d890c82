"""Addresses of blobs. Only `blobs.services` hands them out, with a token."""

from django.urls import path

from blobs import views

urlpatterns = [
    path("blobs/uploads/", views.blob_upload, name="blob-upload"),
    path("blobs/<str:sha256>", views.blob_read, name="blob"),
]
