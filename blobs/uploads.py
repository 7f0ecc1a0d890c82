"""Resumable uploads: bytes arrive in order, in one request or in many, and become a blob when all are in.

The bytes received so far lie in a file of the upload's own; how many there are is in its row. A finished upload is
copied into the store while it is hashed, so that nobody who still writes to that file can touch what is stored.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import BinaryIO

from blobs import store
from blobs.errors import BlobHashMismatch, UploadGap, UploadTooBig, UploadUsedUp
from blobs.models import Upload
from blobs.ranges import ByteRange
from blobs.selectors import blob_is_held, held_count, upload_of
from blobs.services import blob_put
from blobs.tokens import UploadGrant

# Different contents that one subject may store: what it has, and what it makes anew after a crash or two. Without a
# bound, one address could fill the disk.
MAX_CONTENTS = 4


@dataclass(frozen=True, slots=True)
class Progress:
    """How many of an upload's bytes are in. When all are, the blob is stored and held by the upload's subject."""

    received_bytes: int
    total_bytes: int

    @property
    def is_stored(self) -> bool:
        return self.received_bytes == self.total_bytes


def upload_receive(
    *, grant: UploadGrant, sha256: str, part: ByteRange, data: BinaryIO, now: datetime
) -> Progress:
    """Take `part` of the content named `sha256` from the stream; the last part stores the blob.

    Bytes that were received before may come again; an upload that is stored is left as it is. Another content from
    byte 0 on takes the place of an unfinished upload. Raises UploadTooBig and UploadUsedUp before anything is read,
    UploadGap, and BlobHashMismatch after which the upload may start again.
    """
    if part.total > grant.max_bytes:
        raise UploadTooBig(size_bytes=part.total, max_bytes=grant.max_bytes)
    if blob_is_held(sha256, holder=grant.subject):
        return Progress(part.total, part.total)
    if held_count(grant.subject) >= MAX_CONTENTS:
        raise UploadUsedUp(contents=MAX_CONTENTS)
    upload = _upload_begun(grant.subject, sha256, part)
    if part.first > upload.received_bytes:
        raise UploadGap(offset=upload.received_bytes)
    if part.first + part.length <= upload.received_bytes < part.total:
        return Progress(upload.received_bytes, part.total)
    written = store.upload_write(upload.pk, first=part.first, length=part.length, data=data)
    received_bytes = max(upload.received_bytes, part.first + written)
    if not _upload_advance(upload, received_bytes, now=now):
        raise UploadGap(offset=upload_offset(grant.subject))
    if received_bytes == part.total:
        _upload_finish(upload)
    return Progress(received_bytes, part.total)


def upload_offset(subject: str) -> int:
    """The first byte that is missing of a subject's upload."""
    upload = upload_of(subject)
    return upload.received_bytes if upload else 0


def _upload_begun(subject: str, sha256: str, part: ByteRange) -> Upload:
    """The subject's upload of this content; one of other content makes way for it if this one is at its start."""
    upload, _ = Upload.objects.get_or_create(
        subject=subject, defaults={"sha256": sha256, "size_bytes": part.total}
    )
    if (upload.sha256, upload.size_bytes) == (sha256, part.total):
        return upload
    if part.first != 0:
        raise UploadGap(offset=0)
    _upload_drop(upload)
    return Upload.objects.get_or_create(
        subject=subject, defaults={"sha256": sha256, "size_bytes": part.total}
    )[0]


def _upload_advance(upload: Upload, received_bytes: int, *, now: datetime) -> bool:
    """Count the bytes as received, unless another request for this upload has got ahead of us."""
    as_we_saw_it = Upload.objects.filter(pk=upload.pk, received_bytes=upload.received_bytes)
    return as_we_saw_it.update(received_bytes=received_bytes, received_at=now) == 1


def _upload_finish(upload: Upload) -> None:
    try:
        with store.upload_file(upload.pk).open("rb") as file:
            blob_put(data=file, holder=upload.subject, sha256=upload.sha256)
    except (BlobHashMismatch, FileNotFoundError):
        if blob_is_held(upload.sha256, holder=upload.subject):
            return  # the same bytes came twice at once, and the other request has stored them
        _upload_drop(upload)
        raise BlobHashMismatch from None
    store.upload_file(upload.pk).unlink(missing_ok=True)


def _upload_drop(upload: Upload) -> None:
    Upload.objects.filter(pk=upload.pk).delete()
    store.upload_file(upload.pk).unlink(missing_ok=True)
