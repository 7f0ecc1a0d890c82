"""Blobs that nobody holds are collected, and what crashes left behind; what is held or young never is."""

import io
import os
import threading
from datetime import timedelta
from functools import partial

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import transaction

from blobs import services, store
from blobs.models import Blob, BlobHold, Upload
from blobs.ranges import ByteRange
from blobs.selectors import blob_bytes
from blobs.services import blob_hold, blob_put, blob_release, blobs_collect
from blobs.tokens import UploadGrant
from blobs.uploads import upload_receive
from common.clock import utc_now
from tests.at_once import at_once
from tests.blobs.cast import CONTENT, SHA256, files_below, sha256_of

pytestmark = pytest.mark.django_db

AN_HOUR = timedelta(hours=1)
BLOB_FILE = f"{SHA256[:2]}/{SHA256[2:]}"


def collect_all() -> int:
    """Collect as if everything were old."""
    return blobs_collect(older_than=utc_now() + AN_HOUR)


def collect_aged() -> int:
    """Let every blob be old, then collect as usual: files that are being written now are young all the same."""
    Blob.objects.update(created_at=utc_now() - 2 * AN_HOUR)
    return blobs_collect(older_than=utc_now() - AN_HOUR)


def begin_upload() -> Upload:
    upload_receive(
        grant=UploadGrant("lease:1", 100),
        sha256=sha256_of(b"abcdef"),
        part=ByteRange(0, 3, 6),
        data=io.BytesIO(b"abc"),
        now=utc_now(),
    )
    return Upload.objects.get()


def test_a_blob_that_nobody_holds_is_collected(blob_root):
    held, let_go = blob_put(data=CONTENT, holder="job:1"), blob_put(data=b"let go", holder="job:2")
    blob_release(holder="job:2")
    assert collect_all() == 1
    assert files_below(blob_root) == [BLOB_FILE]
    assert list(Blob.objects.all()) == [held]
    assert not Blob.objects.filter(pk=let_go.pk).exists()


def test_a_young_blob_is_left_alone(blob_root):
    blob_put(data=CONTENT, holder="job:1")
    blob_release(holder="job:1")
    assert blobs_collect(older_than=utc_now() - AN_HOUR) == 0
    assert files_below(blob_root) == [BLOB_FILE]


def test_a_collected_blob_can_be_put_again():
    blob_put(data=CONTENT, holder="job:1")
    blob_release(holder="job:1")
    collect_all()
    blob_put(data=CONTENT, holder="job:2")
    assert blob_bytes(SHA256, max_bytes=len(CONTENT)) == CONTENT
    assert collect_all() == 0


def test_a_blob_held_after_the_first_look_is_not_collected(blob_root, monkeypatch):
    blob_put(data=CONTENT, holder="job:1")
    blob_release(holder="job:1")
    collect = services._collect_unheld

    def held_in_between(sha256: str) -> bool:
        blob_hold(sha256=sha256, holder="job:2")
        return collect(sha256)

    monkeypatch.setattr(services, "_collect_unheld", held_in_between)
    assert collect_all() == 0
    assert files_below(blob_root) == [BLOB_FILE]


def test_a_file_without_a_row_is_collected_when_it_is_old(blob_root):
    blob_put(data=CONTENT, holder="job:1")
    BlobHold.objects.all().delete()
    Blob.objects.all().delete()  # as after a put whose transaction was rolled back
    assert blobs_collect(older_than=utc_now() - AN_HOUR) == 0
    assert files_below(blob_root) == [BLOB_FILE]
    assert collect_all() == 1
    assert files_below(blob_root) == []
    assert not Blob.objects.exists()


def test_a_file_put_anew_after_the_first_look_is_not_taken_for_an_orphan(blob_root, monkeypatch):
    blob_put(data=CONTENT, holder="job:1")
    BlobHold.objects.all().delete()
    Blob.objects.all().delete()
    collect = services._collect_orphan

    def put_in_between(sha256, older_than):
        blob_put(data=CONTENT, holder="job:2")
        return collect(sha256, older_than)

    monkeypatch.setattr(services, "_collect_orphan", put_in_between)
    assert collect_all() == 0
    assert blob_bytes(SHA256, max_bytes=len(CONTENT)) == CONTENT


def test_a_file_written_anew_after_the_first_look_is_not_taken_for_an_orphan(blob_root):
    blob_put(data=CONTENT, holder="job:1")
    BlobHold.objects.all().delete()
    Blob.objects.all().delete()
    assert services._collect_orphan(SHA256, utc_now() - AN_HOUR) is False
    assert files_below(blob_root) == [BLOB_FILE]
    assert not Blob.objects.exists()


def test_leftovers_of_a_crash_go_when_they_are_old(blob_root):
    upload = begin_upload()
    for folder in ("incoming", "uploads"):
        (blob_root / folder).mkdir(exist_ok=True)
        (blob_root / folder / "left by a crash").write_bytes(b"x")
    long_ago = (utc_now() - 3 * AN_HOUR).timestamp()
    for name in files_below(blob_root):
        os.utime(blob_root / name, (long_ago, long_ago))
    (blob_root / "incoming" / "on its way").write_bytes(b"x")
    assert blobs_collect(older_than=utc_now() - 2 * AN_HOUR) == 0
    assert files_below(blob_root) == ["incoming/on its way", f"uploads/{upload.pk}"]


def test_an_upload_that_stopped_long_ago_is_dropped(blob_root):
    upload = begin_upload()
    Upload.objects.update(received_at=utc_now() - 3 * AN_HOUR)
    long_ago = (utc_now() - 3 * AN_HOUR).timestamp()
    os.utime(store.upload_file(upload.pk), (long_ago, long_ago))
    blobs_collect(older_than=utc_now() - 2 * AN_HOUR)
    assert files_below(blob_root) == []
    assert not Upload.objects.exists()


def test_the_command_collects_what_is_old(blob_root, capsys):
    blob_put(data=CONTENT, holder="job:1")
    blob_release(holder="job:1")
    call_command("collect_blobs")
    assert capsys.readouterr().out == "Collected 0 blobs.\n"
    Blob.objects.update(created_at=utc_now() - 25 * AN_HOUR)
    call_command("collect_blobs")
    assert capsys.readouterr().out == "Collected 1 blobs.\n"
    with pytest.raises(CommandError, match="at least 1"):
        call_command("collect_blobs", hours=0)


@pytest.mark.django_db(transaction=True)
def test_a_put_waits_for_the_collector_and_the_collector_for_a_put():
    """Stop the collector at its most dangerous moment: the row is deleted, the file not yet."""
    blob_put(data=CONTENT, holder="job:1")
    blob_release(holder="job:1")
    deleted, go_on, is_put = threading.Event(), threading.Event(), threading.Event()
    remove = store.remove

    def removed_late(sha256: str) -> None:
        deleted.set()
        assert go_on.wait(10)
        remove(sha256)

    def put() -> None:
        assert deleted.wait(10)
        threading.Timer(0.3, go_on.set).start()
        blob_put(data=CONTENT, holder="job:2")
        is_put.set()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "remove", removed_late)
        assert at_once(collect_aged, put) == []
    assert is_put.is_set()
    assert blob_bytes(SHA256, max_bytes=len(CONTENT)) == CONTENT
    assert collect_all() == 0


@pytest.mark.django_db(transaction=True)
def test_a_put_that_is_not_committed_yet_is_not_collected():
    blob_put(data=CONTENT, holder="job:1")
    blob_release(holder="job:1")
    Blob.objects.update(created_at=utc_now() - 2 * AN_HOUR)
    is_placed, collecting = threading.Event(), threading.Event()

    def put_slowly() -> None:
        with transaction.atomic():
            blob_put(data=CONTENT, holder="job:2")
            is_placed.set()
            assert collecting.wait(10)
            threading.Event().wait(0.3)

    def collect() -> None:
        assert is_placed.wait(10)
        collecting.set()
        blobs_collect(older_than=utc_now() - AN_HOUR)

    assert at_once(put_slowly, collect) == []
    assert blob_bytes(SHA256, max_bytes=len(CONTENT)) == CONTENT


@pytest.mark.django_db(transaction=True)
def test_puts_and_collections_at_once_lose_nothing_that_is_held(blob_root):
    contents = [f"content {number}".encode() for number in range(4)]

    def put_all(holder: str) -> None:
        for content in contents:
            blob_put(data=content, holder=holder)
            if holder == "short-lived":
                blob_release(holder=holder)

    def collect_often() -> None:
        for _ in range(8):
            collect_aged()

    calls = [partial(put_all, name) for name in ("job:1", "short-lived", "short-lived")]
    assert at_once(*calls, collect_often) == []
    for content in contents:
        assert blob_bytes(sha256_of(content), max_bytes=100) == content
    assert BlobHold.objects.filter(holder="job:1").count() == len(contents)
