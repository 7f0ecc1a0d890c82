"""Content-addressed blobs, who holds each, and uploads under way."""

import uuid

from django.db import models
from django.db.models import Q


class Blob(models.Model):
    """One stored object, named by the SHA-256 of its bytes; its file lies in the blob store under that name."""

    sha256 = models.CharField(max_length=64, primary_key=True)
    size_bytes = models.PositiveBigIntegerField()
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.sha256[:12]


class BlobHold(models.Model):
    """Keeps a blob: `holder` says what for, as `dataset:<id>`. A blob that nobody holds is collected."""

    blob = models.ForeignKey(Blob, on_delete=models.PROTECT, related_name="holds")
    holder = models.CharField(max_length=100)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["blob", "holder"], name="blob_held_once_by_a_holder")]
        indexes = [models.Index(fields=["holder"])]

    def __str__(self) -> str:
        return f"{self.holder} holds {self.blob_id[:12]}"


class Upload(models.Model):
    """A resumable upload by one subject (as `lease:<id>`): how many of the promised bytes have arrived.

    One whose bytes are all in has become a blob; its row stays for a while, so that the uploader may ask.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    subject = models.CharField(max_length=100, unique=True)
    sha256 = models.CharField(max_length=64)
    size_bytes = models.PositiveBigIntegerField()
    received_bytes = models.PositiveBigIntegerField(default=0)
    created_at = models.DateTimeField(auto_now_add=True)
    received_at = models.DateTimeField(auto_now_add=True, help_text="when bytes last arrived")

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="upload_receives_no_more_than_promised",
                condition=Q(received_bytes__lte=models.F("size_bytes")),
            )
        ]

    def __str__(self) -> str:
        return f"{self.subject}: {self.received_bytes} of {self.size_bytes}"
