"""Putting blobs, holding them, handing out addresses for them, and collecting those that nobody holds.

A blob lives for as long as somebody holds it. Whoever puts or holds a blob locks its row, and so does whoever
collects it: they take turns, and a blob that was put or held is never collected on the strength of an older look.
"""

import io
from datetime import datetime, timedelta
from typing import BinaryIO
from urllib.parse import urlencode

from django.conf import settings
from django.db import transaction
from django.urls import reverse

from blobs import store
from blobs.errors import BlobHashMismatch, BlobNotFound
from blobs.models import Blob, BlobHold, Upload
from blobs.tokens import ReadGrant, UploadGrant, read_token, upload_token
from common.clock import utc_now

ADDRESS_TTL_S = 3_600


def blob_put(*, data: bytes | BinaryIO, holder: str, sha256: str | None = None) -> Blob:
    """Store content under its hash, held by `holder`; content that is there already is stored once.

    Streams in bounded memory. Given a `sha256`, the content must have it: BlobHashMismatch otherwise.
    """
    with store.incoming(io.BytesIO(data) if isinstance(data, bytes) else data) as content:
        if sha256 not in (None, content.sha256):
            raise BlobHashMismatch
        with transaction.atomic():
            blob = _row_locked(content)
            _hold(blob, holder)
            # Placed anew even if it was there: until we had the row's lock, it might have been collected.
            store.place(content)
    return blob


@transaction.atomic
def blob_hold(*, sha256: str, holder: str) -> None:
    """Keep a blob for one more holder; a holder holds a blob once. Raises BlobNotFound."""
    blob = Blob.objects.select_for_update().filter(pk=sha256).first()
    if blob is None:
        raise BlobNotFound
    _hold(blob, holder)


def blob_release(*, holder: str, sha256: str | None = None) -> None:
    """Let go of one blob, or of all that `holder` holds."""
    holds = BlobHold.objects.filter(holder=holder)
    if sha256 is not None:
        holds = holds.filter(blob_id=sha256)
    holds.delete()


def read_url(*, sha256: str, reader: str, ttl_s: int = ADDRESS_TTL_S, now: datetime | None = None) -> str:
    """An absolute address at which `reader` may read this one blob for a while."""
    token = read_token(ReadGrant(sha256, reader), expires_at=(now or utc_now()) + timedelta(seconds=ttl_s))
    return _address(reverse("blob", args=[sha256]), token)


def upload_url(
    *, subject: str, max_bytes: int, ttl_s: int = ADDRESS_TTL_S, now: datetime | None = None
) -> str:
    """An absolute address at which `subject` may upload one blob of up to `max_bytes` for a while."""
    token = upload_token(
        UploadGrant(subject, max_bytes), expires_at=(now or utc_now()) + timedelta(seconds=ttl_s)
    )
    return _address(reverse("blob-upload"), token)


def blobs_collect(*, older_than: datetime) -> int:
    """Remove blobs that were first put before `older_than` and that nobody holds, and what crashes left behind.

    Returns how many blobs went. What is younger is left alone, so that an address just handed out goes on working
    and a put that is under way is not disturbed.
    """
    unheld = list(Blob.objects.filter(created_at__lt=older_than, holds=None).values_list("pk", flat=True))
    collected = sum(_collect_unheld(sha256) for sha256 in unheld)
    for prefix, hashes in store.blobs_last_written_before(older_than):
        known = set(Blob.objects.filter(pk__startswith=prefix).values_list("pk", flat=True))
        collected += sum(_collect_orphan(sha256, older_than) for sha256 in sorted(hashes - known))
    Upload.objects.filter(received_at__lt=older_than).delete()
    uploads = {str(upload_id) for upload_id in Upload.objects.values_list("pk", flat=True)}
    store.leftovers_remove(older_than=older_than, uploads=uploads)
    return collected


def _row_locked(content: store.Incoming) -> Blob:
    """The content's row, made or found, and locked in the same statement until the transaction ends."""
    row = Blob(sha256=content.sha256, size_bytes=content.size_bytes)
    # Writing the size that it has anyway takes the lock of a row that exists.
    Blob.objects.bulk_create(
        [row], update_conflicts=True, unique_fields=["sha256"], update_fields=["size_bytes"]
    )
    return row


def _hold(blob: Blob, holder: str) -> None:
    BlobHold.objects.bulk_create([BlobHold(blob=blob, holder=holder)], ignore_conflicts=True)


@transaction.atomic
def _collect_unheld(sha256: str) -> bool:
    """Remove one blob, if it is still there and still held by nobody once we have its lock."""
    blob = Blob.objects.select_for_update().filter(pk=sha256).first()
    if blob is None or BlobHold.objects.filter(blob=blob).exists():
        return False
    blob.delete()
    # The file goes while we have the lock: after it, a new put of the same content could lose its file to us.
    store.remove(sha256)
    return True


@transaction.atomic
def _collect_orphan(sha256: str, older_than: datetime) -> bool:
    """Remove a file without a row, as a put leaves it whose transaction is rolled back."""
    # A row of our own makes whoever puts this content wait, and then put it anew.
    _, is_ours = Blob.objects.get_or_create(pk=sha256, defaults={"size_bytes": 0})
    if not is_ours:
        return False
    is_old = store.is_older(store.blob_file(sha256), older_than)
    if is_old:
        store.remove(sha256)
    Blob.objects.filter(pk=sha256).delete()
    return is_old


def _address(path: str, token: str) -> str:
    return f"{settings.PUBLIC_URL}{path}?{urlencode({'token': token})}"
