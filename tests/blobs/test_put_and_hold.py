"""Content is stored once under its hash, whole, for as long as somebody holds it."""

import io
import os
from functools import partial

import pytest
from django.db import transaction

from blobs import store
from blobs.errors import BlobHashMismatch, BlobNotFound, BlobTooBig
from blobs.models import Blob, BlobHold
from blobs.selectors import blob_bytes, blob_is_held, blob_open, blob_path, blob_size
from blobs.services import blob_hold, blob_put, blob_release
from tests.at_once import at_once
from tests.blobs.cast import CONTENT, SHA256, files_below, sha256_of

pytestmark = pytest.mark.django_db


def holders(sha256: str) -> set[str]:
    return set(BlobHold.objects.filter(blob_id=sha256).values_list("holder", flat=True))


@pytest.mark.parametrize("data", [CONTENT, io.BytesIO(CONTENT)], ids=["bytes", "stream"])
def test_content_is_stored_under_its_hash(blob_root, data):
    if isinstance(data, io.BytesIO):
        data.seek(0)
    blob = blob_put(data=data, holder="dataset:1")
    assert (blob.sha256, blob.size_bytes) == (SHA256, len(CONTENT))
    assert files_below(blob_root) == [f"{SHA256[:2]}/{SHA256[2:]}"]
    assert blob_path(SHA256).read_bytes() == CONTENT
    assert blob_bytes(SHA256, max_bytes=len(CONTENT)) == CONTENT
    assert blob_size(SHA256) == len(CONTENT)
    assert blob_is_held(SHA256, holder="dataset:1")


def test_the_same_content_put_by_two_is_stored_once_and_held_by_both(blob_root):
    blob_put(data=CONTENT, holder="dataset:1")
    blob_put(data=CONTENT, holder="dataset:2")
    blob_put(data=CONTENT, holder="dataset:2")
    assert Blob.objects.count() == 1
    assert holders(SHA256) == {"dataset:1", "dataset:2"}
    assert len(files_below(blob_root)) == 1


def test_an_empty_blob_is_a_blob_too():
    blob = blob_put(data=b"", holder="dataset:1")
    assert blob_bytes(blob.sha256, max_bytes=0) == b""


def test_content_that_is_not_what_was_announced_leaves_nothing(blob_root):
    with pytest.raises(BlobHashMismatch):
        blob_put(data=CONTENT, holder="dataset:1", sha256=sha256_of(b"something else"))
    assert files_below(blob_root) == []
    assert not Blob.objects.exists()


def test_a_stream_that_breaks_leaves_nothing(blob_root):
    class Broken(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            if self.tell() > 500_000:
                raise ConnectionResetError
            return super().read(size)

    with pytest.raises(ConnectionResetError):
        blob_put(data=Broken(b"x" * 1_000_000), holder="dataset:1")
    assert files_below(blob_root) == []
    assert not Blob.objects.exists()


def test_a_stream_is_read_in_small_pieces():
    class Watched(io.BytesIO):
        largest = 0

        def read(self, size: int | None = -1) -> bytes:
            assert size is not None
            assert size > 0, "asked for all that there is"
            self.largest = max(self.largest, size)
            return super().read(size)

    stream = Watched(b"x" * 3_000_000)
    assert blob_put(data=stream, holder="dataset:1").size_bytes == 3_000_000
    assert stream.largest <= 1_000_000


def test_letting_go_of_one_blob_keeps_the_holder_s_others():
    first, second = blob_put(data=b"first", holder="job:1"), blob_put(data=b"second", holder="job:1")
    blob_hold(sha256=first.sha256, holder="job:2")
    blob_release(holder="job:1", sha256=first.sha256)
    assert (holders(first.sha256), holders(second.sha256)) == ({"job:2"}, {"job:1"})
    blob_release(holder="job:1")
    assert (holders(first.sha256), holders(second.sha256)) == ({"job:2"}, set())


@pytest.mark.parametrize(
    "sha256", ["0" * 64, "no hash", "../../etc/passwd", "", "A" * 64, "\N{ARABIC-INDIC DIGIT ZERO}" * 64]
)
def test_a_blob_that_is_not_there_is_not_found(sha256):
    for attempt in (
        lambda: blob_open(sha256),
        lambda: blob_path(sha256),
        lambda: blob_size(sha256),
        lambda: blob_bytes(sha256, max_bytes=10),
        lambda: blob_hold(sha256=sha256, holder="job:1"),
    ):
        with pytest.raises(BlobNotFound):
            attempt()


def test_a_blob_over_the_reader_s_bound_is_not_read():
    blob_put(data=CONTENT, holder="dataset:1")
    with pytest.raises(BlobTooBig, match="10240 bytes, and only 10239"):
        blob_bytes(SHA256, max_bytes=len(CONTENT) - 1)


def test_content_is_on_the_disk_before_it_has_its_name(monkeypatch):
    steps: list[str] = []

    def watch(module: object, name: str) -> None:
        real = getattr(module, name)

        def watched(*args):
            steps.append(name)
            return real(*args)

        monkeypatch.setattr(module, name, watched)

    watch(os, "fsync")
    watch(store, "place")
    blob_put(data=CONTENT, holder="dataset:1")
    assert steps == ["fsync", "place", "fsync", "fsync"]  # the file; then its new folder's name and its own


@pytest.mark.django_db(transaction=True)
def test_many_writers_of_the_same_content_at_once_store_it_once(blob_root):
    writers = (partial(blob_put, data=CONTENT, holder=f"dataset:{number % 3}") for number in range(6))
    assert at_once(*writers) == []
    assert holders(SHA256) == {"dataset:0", "dataset:1", "dataset:2"}
    assert blob_bytes(SHA256, max_bytes=len(CONTENT)) == CONTENT
    assert len(files_below(blob_root)) == 1


@pytest.mark.django_db(transaction=True)
def test_a_put_that_is_rolled_back_can_be_put_again():
    with transaction.atomic():
        blob_put(data=CONTENT, holder="dataset:1")
        transaction.set_rollback(True)
    assert not Blob.objects.exists()
    blob_put(data=CONTENT, holder="dataset:1")
    assert blob_bytes(SHA256, max_bytes=len(CONTENT)) == CONTENT


def test_a_disk_that_is_full_leaves_no_row_without_a_file(monkeypatch):
    def full(content: store.Incoming) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(store, "place", full)
    with pytest.raises(OSError, match="no space left"):
        blob_put(data=CONTENT, holder="dataset:1")
    assert not Blob.objects.exists()
