"""A signed address reads one blob, whole or by range, until it expires."""

from datetime import timedelta
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blobs.errors import RangeNotSatisfiable
from blobs.ranges import parse_range
from blobs.services import blob_put, blob_release, blobs_collect, read_url, upload_url
from common.clock import utc_now
from tests.blobs.cast import CONTENT, SHA256, local

pytestmark = pytest.mark.django_db


@pytest.fixture
def address() -> str:
    blob_put(data=CONTENT, holder="dataset:1")
    return local(read_url(sha256=SHA256, reader="device:1"))


def body(response) -> bytes:
    return b"".join(response.streaming_content)


def test_an_address_is_absolute_and_gives_the_whole_blob(client, settings, address):
    settings.PUBLIC_URL = "https://nightshift.example"
    assert read_url(sha256=SHA256, reader="device:1").startswith(
        f"https://nightshift.example/blobs/{SHA256}?token="
    )
    response = client.get(address)
    assert (response.status_code, body(response)) == (200, CONTENT)
    assert response["Content-Length"] == str(len(CONTENT))
    assert response["Content-Type"] == "application/octet-stream"
    assert response["ETag"] == f'"{SHA256}"'
    assert response["Accept-Ranges"] == "bytes"
    assert response["X-Content-Type-Options"] == "nosniff"
    assert {"private", "immutable"} <= set(response["Cache-Control"].split(", "))


def test_head_tells_the_size_without_the_bytes(client, address):
    response = client.head(address)
    assert (response.status_code, response["Content-Length"], response.content) == (200, "10240", b"")


@pytest.mark.parametrize(
    ("header", "first", "last"),
    [
        ("bytes=0-0", 0, 0),
        ("bytes=100-199", 100, 199),
        ("bytes=10000-", 10_000, 10_239),
        ("bytes=10000-999999", 10_000, 10_239),
        ("bytes=-1", 10_239, 10_239),
        ("bytes=-999999", 0, 10_239),
    ],
)
def test_a_range_gives_its_bytes_and_says_which(client, address, header, first, last):
    response = client.get(address, headers={"Range": header})
    assert (response.status_code, body(response)) == (206, CONTENT[first : last + 1])
    assert response["Content-Range"] == f"bytes {first}-{last}/10240"
    assert response["Content-Length"] == str(last - first + 1)


@pytest.mark.parametrize("header", ["bytes=10240-", "bytes=99999-100000", "bytes=-0"])
def test_a_range_after_the_end_says_how_long_the_blob_is(client, address, header):
    response = client.get(address, headers={"Range": header})
    assert (response.status_code, response["Content-Range"]) == (416, "bytes */10240")
    assert response.json()["code"] == "range_not_satisfiable"


@pytest.mark.parametrize("header", ["bytes=5-2", "bytes=-", "bytes=1-2,4-5", "lines=1-2", "bytes=a-b", "5-6"])
def test_a_range_that_means_nothing_gives_the_whole_blob(client, address, header):
    response = client.get(address, headers={"Range": header})
    assert (response.status_code, body(response)) == (200, CONTENT)


@pytest.mark.parametrize(
    ("if_range", "status"), [(f'"{SHA256}"', 206), ('"another"', 200), ("Tue, 01 Dec 2026 00:00:00 GMT", 200)]
)
def test_a_range_of_another_version_gives_the_whole_blob(client, address, if_range, status):
    response = client.get(address, headers={"Range": "bytes=0-9", "If-Range": if_range})
    assert response.status_code == status
    response.close()


@pytest.mark.parametrize("header", [f'"{SHA256}"', f'W/"{SHA256}"', f'"other", "{SHA256}"', "*"])
def test_a_blob_that_the_client_has_is_not_sent_again(client, address, header):
    response = client.get(address, headers={"If-None-Match": header, "Range": "bytes=0-9"})
    assert (response.status_code, response.content, response["ETag"]) == (304, b"", f'"{SHA256}"')


def test_another_etag_does_not_save_the_transfer(client, address):
    response = client.get(address, headers={"If-None-Match": '"other"'})
    assert (response.status_code, body(response)) == (200, CONTENT)


def test_an_address_for_one_blob_finds_no_other(client, address):
    other = blob_put(data=b"somebody else's", holder="dataset:2")
    response = client.get(address.replace(SHA256, other.sha256))
    assert (response.status_code, response.json()["code"]) == (404, "blob_not_found")


def test_an_expired_address_is_refused_with_a_code(client):
    blob_put(data=CONTENT, holder="dataset:1")
    an_hour_ago = utc_now() - timedelta(hours=1)
    live = read_url(sha256=SHA256, reader="device:1", ttl_s=3_660, now=an_hour_ago)
    expired = read_url(sha256=SHA256, reader="device:1", ttl_s=3_600, now=an_hour_ago)
    assert client.head(local(live)).status_code == 200
    response = client.get(local(expired))
    assert (response.status_code, response.json()["code"]) == (403, "blob_token_expired")


def test_a_token_that_was_made_for_something_else_is_refused(client, address):
    path, token = address.split("?token=")
    upload = local(upload_url(subject="lease:1", max_bytes=10)).split("?token=")[1]
    for wrong in ("", "?token=", f"?token=x{token}", f"?token={token[:-1]}", f"?token={upload}"):
        response = client.get(path + wrong)
        assert (response.status_code, response.json()["code"]) == (403, "blob_token_invalid"), wrong


def test_a_token_is_never_repeated_in_an_answer_or_a_log(client, address, caplog):
    token = parse_qs(urlsplit(address).query)["token"][0]
    with caplog.at_level("DEBUG"):
        refused = client.get(address.replace(SHA256, "0" * 64))
        client.get(address, headers={"Range": "bytes=99999-"})
    assert token not in refused.content.decode()
    assert token not in caplog.text


def test_a_blob_that_was_collected_is_not_found(client, address):
    blob_release(holder="dataset:1")
    assert blobs_collect(older_than=utc_now() + timedelta(hours=1)) == 1
    assert client.get(address).status_code == 404


@pytest.mark.parametrize("method", ["post", "put", "delete", "patch"])
def test_an_address_only_reads(client, address, method):
    assert getattr(client, method)(address).status_code == 405


@given(
    total=st.integers(0, 50),
    first=st.none() | st.integers(0, 60),
    last=st.none() | st.integers(0, 60),
)
def test_every_range_is_what_slicing_says(total, first, last):
    header = f"bytes={'' if first is None else first}-{'' if last is None else last}"
    content = bytes(range(total))
    if first is None:
        expected = None if last is None else content[max(0, total - last) :]
    else:
        expected = (
            None if last is not None and last < first else content[first : None if last is None else last + 1]
        )
    try:
        part = parse_range(header, total=total)
    except RangeNotSatisfiable:
        assert expected == b""
    else:
        got = None if part is None else content[part.first : part.first + part.length]
        assert got == expected
        assert part is None or (part.length > 0 and part.first + part.length <= total)


@given(header=st.text(max_size=40), total=st.integers(0, 10**12))
def test_no_header_however_odd_breaks_the_parser(header, total):
    try:
        part = parse_range(header, total=total)
    except RangeNotSatisfiable:
        return
    assert part is None or 0 <= part.first < part.first + part.length <= total
