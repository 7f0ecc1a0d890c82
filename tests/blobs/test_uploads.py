"""An upload arrives in one part or in many, is resumed where it stopped, and is stored only if its hash is right."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blobs import store
from blobs.models import Blob, Upload
from blobs.ranges import ByteRange, parse_content_range
from blobs.selectors import blob_bytes, blob_is_held
from blobs.services import blob_put, blob_release, read_url, upload_url
from blobs.uploads import Progress
from common.clock import utc_now
from tests.blobs.cast import CONTENT, SHA256, files_below, local, sha256_of

pytestmark = pytest.mark.django_db

LEASE = "lease:1"


class Uploader:
    """A device that uploads to one address."""

    def __init__(self, client, *, subject: str = LEASE, max_bytes: int = 20_000) -> None:
        self.client = client
        self.address = local(upload_url(subject=subject, max_bytes=max_bytes))

    def put(self, content: bytes = CONTENT, *, first: int = 0, last: int | None = None, **headers: str):
        """Send bytes `first` to `last` of the content, or all of it without a range."""
        given = {"X-Content-SHA256": sha256_of(content)} | headers
        sent = content
        if last is not None:
            given = {"Content-Range": f"bytes {first}-{last}/{len(content)}"} | given
            sent = content[first : last + 1]
        return self.client.put(self.address, sent, content_type="application/octet-stream", headers=given)

    def offset(self) -> int:
        response = self.client.head(self.address)
        assert response.status_code == 200
        return int(response["Upload-Offset"])


@pytest.fixture
def uploader(client) -> Uploader:
    return Uploader(client)


def is_stored() -> bool:
    return blob_is_held(SHA256, holder=LEASE) and blob_bytes(SHA256, max_bytes=20_000) == CONTENT


def test_an_upload_in_one_part_is_stored_and_held_by_its_subject(uploader, blob_root):
    response = uploader.put()
    assert (response.status_code, response.json()) == (201, {"sha256": SHA256, "size_bytes": 10_240})
    assert is_stored()
    assert files_below(blob_root) == [f"{SHA256[:2]}/{SHA256[2:]}"]


def test_an_upload_in_parts_says_after_each_how_far_it_is(uploader):
    assert uploader.offset() == 0
    first = uploader.put(first=0, last=4_999)
    assert (first.status_code, first.json(), first["Upload-Offset"]) == (
        202,
        {"upload_offset": 5_000},
        "5000",
    )
    assert uploader.offset() == 5_000
    assert not is_stored()
    assert uploader.put(first=5_000, last=10_239).status_code == 201
    assert uploader.offset() == 10_240
    assert is_stored()


def test_a_gap_is_refused_with_the_offset_to_go_on_from(uploader):
    uploader.put(first=0, last=4_999)
    response = uploader.put(first=6_000, last=10_239)
    assert (response.status_code, response["Upload-Offset"]) == (409, "5000")
    assert response.json()["code"] == "upload_gap"
    assert "byte 5000" in response.json()["message"]
    assert uploader.put(first=5_000, last=10_239).status_code == 201


def test_parts_that_were_received_may_come_again(uploader):
    uploader.put(first=0, last=4_999)
    assert uploader.put(first=1_000, last=1_999)["Upload-Offset"] == "5000"
    assert uploader.put(first=4_000, last=5_999)["Upload-Offset"] == "6000"  # an overlap counts once
    assert uploader.put(first=0, last=10_239).status_code == 201
    assert is_stored()


def test_a_whole_upload_after_a_part_of_it_is_stored(uploader):
    uploader.put(first=0, last=4_999)
    assert uploader.put().status_code == 201
    assert is_stored()


def test_the_same_upload_twice_is_one(uploader):
    assert [uploader.put().status_code, uploader.put().status_code] == [201, 201]
    assert uploader.put(first=5_000, last=10_239).status_code == 201
    assert Blob.objects.count() == 1


def test_an_upload_can_be_repeated_after_its_blob_was_let_go(uploader):
    uploader.put()
    blob_release(holder=LEASE)
    assert uploader.put().status_code == 201
    assert is_stored()


def test_a_crash_between_the_file_and_its_row_costs_only_that_part(uploader, monkeypatch):
    uploader.put(first=0, last=2_999)
    upload = Upload.objects.get(subject=LEASE)
    with store.upload_file(upload.pk).open("ab") as file:
        file.write(b"bytes that reached the disk and were never counted")
    assert uploader.offset() == 3_000
    assert uploader.put(first=3_000, last=10_239).status_code == 201
    assert is_stored()


def test_a_body_that_breaks_off_is_not_counted_and_comes_again(uploader, monkeypatch):
    uploader.put(first=0, last=2_999)
    monkeypatch.setattr("django.core.handlers.wsgi.WSGIRequest.read", _broken)
    with pytest.raises(ConnectionResetError):
        uploader.put(first=3_000, last=10_239)
    monkeypatch.undo()
    assert uploader.offset() == 3_000
    assert uploader.put(first=3_000, last=10_239).status_code == 201
    assert is_stored()


def _broken(*args):
    raise ConnectionResetError


def test_a_wrong_hash_stores_nothing_and_the_upload_starts_again(uploader, blob_root):
    response = uploader.put(**{"X-Content-SHA256": sha256_of(b"something else")})
    assert (response.status_code, response.json()["code"]) == (422, "blob_hash_mismatch")
    assert response.json()["field"] == "X-Content-SHA256"
    assert files_below(blob_root) == []
    assert not Blob.objects.exists()
    assert uploader.offset() == 0
    assert uploader.put().status_code == 201


def test_a_file_lost_from_the_disk_is_not_taken_for_the_content(uploader):
    uploader.put(first=0, last=4_999)
    store.upload_file(Upload.objects.get(subject=LEASE).pk).unlink()
    assert uploader.put(first=5_000, last=10_239).status_code == 422
    assert uploader.offset() == 0
    assert uploader.put().status_code == 201


def test_other_content_from_its_start_takes_the_place_of_an_unfinished_upload(uploader, blob_root):
    uploader.put(first=0, last=4_999)
    other = b"the result of another run"
    gap = uploader.put(other, first=5, last=9)
    assert (gap.status_code, gap["Upload-Offset"]) == (409, "0")
    assert uploader.put(other).status_code == 201
    assert blob_is_held(sha256_of(other), holder=LEASE)
    assert len(files_below(blob_root)) == 1


def test_an_address_stores_four_different_contents_and_no_more(uploader, blob_root):
    assert [uploader.put(bytes([n]) * 100).status_code for n in range(4)] == [201] * 4
    refused = uploader.put(b"a fifth")
    assert (refused.status_code, refused.json()["code"]) == (403, "upload_used_up")
    assert len(files_below(blob_root)) == 4
    assert uploader.put(bytes(100)).status_code == 201  # what it has stored may come again


def test_uploads_of_two_subjects_do_not_meet(client):
    first, second = Uploader(client), Uploader(client, subject="lease:2")
    first.put(first=0, last=4_999)
    assert second.offset() == 0
    assert second.put().status_code == 201
    assert first.offset() == 5_000
    assert not blob_is_held(SHA256, holder=LEASE)  # having it elsewhere is no proof of having sent it
    assert first.put(first=5_000, last=10_239).status_code == 201


def test_an_upload_over_its_bound_is_refused_before_a_byte_is_read(client, blob_root, monkeypatch):
    uploader = Uploader(client, max_bytes=10_239)
    monkeypatch.setattr("django.core.handlers.wsgi.WSGIRequest.read", _broken)
    for response in (uploader.put(), uploader.put(first=0, last=10)):
        assert (response.status_code, response.json()["code"]) == (413, "upload_too_big")
        assert "at most 10239" in response.json()["message"]
    assert files_below(blob_root) == []
    assert not Upload.objects.exists()


def test_an_empty_upload_is_stored(uploader):
    assert uploader.put(b"", **{"Content-Length": "0"}).status_code == 201
    assert blob_is_held(sha256_of(b""), holder=LEASE)


@pytest.mark.parametrize(
    ("headers", "field"),
    [
        ({"X-Content-SHA256": "no hash"}, "X-Content-SHA256"),
        ({"X-Content-SHA256": ""}, "X-Content-SHA256"),
        ({"Content-Range": "bytes 0-99/10240"}, "Content-Range"),  # but the body has 10,240
        ({"Content-Range": "bytes 0-10239/*"}, "Content-Range"),
        ({"Content-Range": "bytes 5-2/10240"}, "Content-Range"),
        ({"Content-Range": "bytes 0-10239/100"}, "Content-Range"),
        ({"Content-Range": "lines 1-2/3"}, "Content-Range"),
        ({"Content-Length": "many"}, "Content-Length"),
        ({"Content-Length": "-5"}, "Content-Length"),
    ],
)
def test_a_header_that_makes_no_sense_is_refused_by_name(uploader, blob_root, headers, field):
    response = uploader.put(**headers)
    assert (response.status_code, response.json()["code"]) == (400, "upload_header_invalid")
    assert response.json()["field"] == field
    assert files_below(blob_root) == []


def test_only_a_live_upload_address_takes_bytes(client):
    blob_put(data=CONTENT, holder="dataset:1")
    path = "/blobs/uploads/"
    read_token = local(read_url(sha256=SHA256, reader=LEASE)).split("?")[1]
    for query in ("", "?token=x", f"?{read_token}"):
        response = client.put(path + query, b"x", headers={"X-Content-SHA256": sha256_of(b"x")})
        assert (response.status_code, response.json()["code"]) == (403, "blob_token_invalid")
    expired = upload_url(subject=LEASE, max_bytes=10, ttl_s=60, now=utc_now() - timedelta(minutes=2))
    assert client.put(local(expired), b"x").json()["code"] == "blob_token_expired"
    assert client.head(local(expired)).status_code == 403


def test_an_upload_needs_no_cookie_and_no_csrf_token(client):
    client.handler.enforce_csrf_checks = True
    assert Uploader(client).put().status_code == 201


@given(st.integers(0, 10**12), st.integers(1, 10**12), st.integers(0, 10**12))
def test_a_content_range_is_read_back_as_it_was_written(first, length, after):
    part = ByteRange(first, length, first + length + after)
    assert parse_content_range(part.content_range) == part


@given(st.text(max_size=40))
def test_no_content_range_however_odd_breaks_the_parser(header):
    part = parse_content_range(header)
    assert part is None or 0 <= part.first < part.first + part.length <= part.total


def test_progress_is_stored_when_all_is_in():
    assert Progress(10, 10).is_stored
    assert not Progress(9, 10).is_stored
