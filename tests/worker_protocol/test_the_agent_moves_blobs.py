"""Blobs are cached by hash, checked before use, and moved over connections that break."""

import hashlib
import os
import random

import httpx
import pytest

from tests.worker_protocol.sites import blob_site
from worker_protocol.agent import transport
from worker_protocol.agent.cache import BlobCache
from worker_protocol.agent.errors import LeaseFailed
from worker_protocol.agent.transport import Transport
from worker_protocol.wire import messages as msg

DATA = bytes(range(256)) * 100
PATIENCE_S = 30


@pytest.fixture
def site():
    with blob_site() as site:
        yield site


@pytest.fixture
def cache(tmp_path):
    return BlobCache(tmp_path / "blobs", max_bytes=100_000)


@pytest.fixture
async def mover(cache):
    async def no_wait(_seconds: float) -> None:
        pass

    async with httpx.AsyncClient() as client:
        yield Transport(client, cache, rng=random.Random(0), sleep=no_wait)


async def test_a_blob_is_fetched_once(site, mover, cache):
    blob = site.add(DATA)
    assert await mover.fetch(blob, patience_s=PATIENCE_S) == DATA
    assert await mover.fetch(blob, patience_s=PATIENCE_S) == DATA
    assert site.requests == ["GET"]
    assert cache.held(9) == [blob.sha256]


async def test_a_blob_that_went_bad_on_disk_is_fetched_again(site, mover, tmp_path):
    blob = site.add(DATA)
    await mover.fetch(blob, patience_s=PATIENCE_S)
    (tmp_path / "blobs" / blob.sha256).write_bytes(b"x" + DATA[1:])
    assert await mover.fetch(blob, patience_s=PATIENCE_S) == DATA
    assert site.requests == ["GET", "GET"]


async def test_a_broken_download_goes_on_where_it_stopped(site, mover):
    blob = site.add(DATA)
    site.faults = ["cut"]
    assert await mover.fetch(blob, patience_s=PATIENCE_S) == DATA
    assert site.requests == ["GET", f"GET bytes={len(DATA) // 2}-"]


async def test_wrong_bytes_are_dropped_and_fetched_anew(site, mover, tmp_path):
    blob = site.add(DATA)
    site.faults = ["spoil"]
    assert await mover.fetch(blob, patience_s=PATIENCE_S) == DATA
    assert site.requests == ["GET", "GET"]


async def test_wrong_bytes_for_ever_give_up(site, mover, cache):
    blob = site.add(DATA)
    site.faults = ["spoil"] * 100
    with pytest.raises(LeaseFailed, match="hash") as failed:
        await mover.fetch(blob, patience_s=PATIENCE_S)
    assert failed.value.reason == "data_unavailable"
    assert cache.read(blob.sha256) is None


async def test_trouble_of_the_moment_is_waited_out(site, mover):
    blob = site.add(DATA)
    site.faults = [503, 429, "cut", 500]
    assert await mover.fetch(blob, patience_s=PATIENCE_S) == DATA


@pytest.mark.parametrize("status", [403, 404])
async def test_a_refusal_is_not_asked_twice(status, site, mover):
    site.faults = [status]
    with pytest.raises(LeaseFailed) as failed:
        await mover.fetch(site.add(DATA), patience_s=PATIENCE_S)
    assert (failed.value.reason, site.requests) == ("data_unavailable", ["GET"])


async def test_a_site_that_is_away_gives_up_in_the_end(mover):
    blob = msg.Blob(sha256="ab" * 32, size_bytes=1, url="http://127.0.0.1:9/blob")
    with pytest.raises(LeaseFailed, match="download of blob abab"):
        await mover.fetch(blob, patience_s=PATIENCE_S)


async def test_a_blob_longer_than_promised_is_not_read_to_its_end(site, mover):
    blob = site.add(DATA)
    with pytest.raises(LeaseFailed, match="longer"):
        await mover.fetch(msg.Blob(sha256=blob.sha256, size_bytes=10, url=blob.url), patience_s=PATIENCE_S)


async def test_a_small_delta_is_one_request(site, mover):
    await mover.upload(site.url + "/u", DATA, patience_s=PATIENCE_S)
    assert site.uploads["/u"] == DATA
    assert site.requests == ["PUT"]


async def test_a_large_delta_goes_in_parts_and_on_where_it_stopped(site, mover, monkeypatch):
    monkeypatch.setattr(transport, "UPLOAD_PART_BYTES", 10_000)
    site.faults = ["", 503]
    await mover.upload(site.url + "/u", DATA, patience_s=PATIENCE_S)
    assert site.uploads["/u"] == DATA
    total = len(DATA)
    second = f"PUT bytes 10000-19999/{total}"
    assert site.requests == [
        "HEAD",
        f"PUT bytes 0-9999/{total}",
        second,
        "HEAD",
        second,
        f"PUT bytes 20000-{total - 1}/{total}",
    ]


async def test_an_upload_starts_where_the_site_says(site, mover, monkeypatch):
    """As when another try has sent other bytes before: the site answers 409 and where to go on."""
    monkeypatch.setattr(transport, "UPLOAD_PART_BYTES", 10_000)
    site.uploads["/u"] = bytes(20_000)
    site.faults = ["gap"]
    await mover.upload(site.url + "/u", DATA, patience_s=PATIENCE_S)
    assert site.uploads["/u"] == DATA
    assert site.requests[1:3] == [
        f"PUT bytes 20000-{len(DATA) - 1}/{len(DATA)}",
        f"PUT bytes 0-9999/{len(DATA)}",
    ]


async def test_a_site_that_refuses_a_delta_is_not_pressed(site, mover):
    site.faults = [413]
    with pytest.raises(LeaseFailed, match="413"):
        await mover.upload(site.url + "/u", DATA, patience_s=PATIENCE_S)


def put(cache: BlobCache, data: bytes, used_at: int) -> str:
    sha256 = hashlib.sha256(data).hexdigest()
    cache.part(sha256).write_bytes(data)
    cache.keep(sha256)
    os.utime(cache.part(sha256).with_suffix(""), (used_at, used_at))
    return sha256


def test_the_cache_drops_what_was_used_longest_ago(tmp_path):
    cache = BlobCache(tmp_path, max_bytes=250)
    old, newer = put(cache, b"a" * 100, used_at=1), put(cache, b"b" * 100, used_at=2)
    assert cache.read(old) is not None  # used now, so the other one is the oldest
    newest = put(cache, b"c" * 100, used_at=2**31)
    assert cache.read(newer) is None
    assert set(cache.held(9)) == {old, newest}


def test_a_blob_larger_than_the_cache_serves_its_lease(tmp_path):
    cache = BlobCache(tmp_path, max_bytes=10)
    big = put(cache, b"x" * 100, used_at=1)
    assert cache.read(big) is not None


def test_only_as_many_blobs_are_named_as_a_hello_holds(tmp_path):
    cache = BlobCache(tmp_path, max_bytes=10_000)
    hashes = [put(cache, bytes([n]), used_at=n + 1) for n in range(5)]
    assert cache.held(3) == list(reversed(hashes))[:3]
