"""Blobs over HTTP: downloads and uploads that go on where they stopped, and are checked by hash."""

import asyncio
import hashlib
import random
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import httpx

from worker_protocol.agent.backoff import backoff_s
from worker_protocol.agent.cache import BlobCache
from worker_protocol.agent.errors import LeaseFailed
from worker_protocol.wire import messages as msg

BACKOFF_BASE_S = 0.5
BACKOFF_CAP_S = 10.0
# One request's part of an upload: what a dropped connection can cost.
UPLOAD_PART_BYTES = 1024 * 1024

_T = TypeVar("_T")


class Transport:
    """Fetches blobs through the cache, and sends deltas. What cannot be had or sent is a `LeaseFailed`.

    `patience_s` bounds the waits between tries: a site that restarts is worth waiting for while the lease lives.
    """

    def __init__(
        self,
        client: httpx.AsyncClient,
        cache: BlobCache,
        *,
        rng: random.Random,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._client = client
        self._cache = cache
        self._rng = rng
        self._sleep = sleep

    async def fetch(self, blob: msg.Blob, *, patience_s: float) -> bytes:
        """The blob's bytes, checked; from the cache if they are there."""
        data = await asyncio.to_thread(self._cache.read, blob.sha256)
        if data is not None:
            return data
        what = f"download of blob {blob.sha256[:12]}"
        return await self._with_retries(lambda: self._download(blob), what, patience_s)

    async def upload(self, url: str, data: bytes, *, patience_s: float) -> None:
        """Send `data`; a repeated or interrupted upload goes on where it stopped."""
        sha256 = hashlib.sha256(data).hexdigest()
        await self._with_retries(lambda: self._send(url, data, sha256), "upload of the delta", patience_s)

    async def _with_retries(self, attempt: Callable[[], Awaitable[_T]], what: str, patience_s: float) -> _T:
        tried, waited_s = 0, 0.0
        while True:
            try:
                return await attempt()
            except (httpx.TransportError, _TryAgain) as error:
                wait_s = backoff_s(tried, base_s=BACKOFF_BASE_S, cap_s=BACKOFF_CAP_S, rng=self._rng)
                tried, waited_s = tried + 1, waited_s + wait_s
                if waited_s > patience_s:
                    raise LeaseFailed("data_unavailable", f"{what}: {error}") from error
            await self._sleep(wait_s)

    async def _download(self, blob: msg.Blob) -> bytes:
        part = self._cache.part(blob.sha256)
        await self._download_rest(blob, part)
        data = part.read_bytes()
        if hashlib.sha256(data).hexdigest() != blob.sha256:
            part.unlink()
            raise _TryAgain("the bytes do not have the hash that was promised")
        self._cache.keep(blob.sha256)
        return data

    async def _download_rest(self, blob: msg.Blob, part: Path) -> None:
        offset = part.stat().st_size if part.exists() else 0
        if offset >= blob.size_bytes > 0:  # whole, or wrong: the hash will tell
            return
        headers = {"Range": f"bytes={offset}-"} if offset else {}
        async with self._client.stream("GET", blob.url, headers=headers) as response:
            if response.status_code not in (200, 206):
                part.unlink(missing_ok=True)  # so that a part which the server cannot continue is not kept
                raise _problem(response)
            if response.status_code == 200:  # the whole, whatever was asked
                offset = 0
            with part.open("ab" if offset else "wb") as file:
                async for chunk in response.aiter_bytes():
                    offset += len(chunk)
                    if offset > blob.size_bytes:
                        raise LeaseFailed("data_unavailable", "a blob is longer than its lease says")
                    file.write(chunk)
        if offset < blob.size_bytes:
            raise _TryAgain(f"it ended after {offset} of {blob.size_bytes} bytes")

    async def _send(self, url: str, data: bytes, sha256: str) -> None:
        """Ask where to go on, then send part by part; the server says after each what it lacks."""
        offset = await self._upload_offset(url) if len(data) > UPLOAD_PART_BYTES else 0
        for _ in range(
            2 * len(data) // UPLOAD_PART_BYTES + 4
        ):  # all parts, and a few answers to start elsewhere
            part = data[offset : offset + UPLOAD_PART_BYTES]
            headers = {"X-Content-SHA256": sha256}
            if len(part) < len(data):
                headers["Content-Range"] = f"bytes {offset}-{offset + len(part) - 1}/{len(data)}"
            response = await self._client.put(url, content=part, headers=headers)
            if response.status_code == 201:
                return
            if response.status_code not in (202, 409):
                raise _problem(response)
            offset = _offset_in(response, len(data))
        raise _TryAgain("the server asks for the same part again and again")

    async def _upload_offset(self, url: str) -> int:
        response = await self._client.head(url)
        if response.is_error:
            raise _problem(response)
        return int(response.headers.get("Upload-Offset", "0"))


class _TryAgain(Exception):
    """A try has failed in a way that another may not."""


def _offset_in(response: httpx.Response, size_bytes: int) -> int:
    offset = response.headers.get("Upload-Offset", "")
    if not offset.isdigit() or int(offset) >= size_bytes:
        raise _TryAgain(f"the server answered {response.status_code} without saying where to go on")
    return int(offset)


def _problem(response: httpx.Response) -> Exception:
    """What a refusing answer means: trouble of the moment, or the end of it."""
    if response.status_code in (408, 416, 429) or response.status_code >= 500:
        return _TryAgain(f"the server answered {response.status_code}")
    return LeaseFailed("data_unavailable", f"the server answered {response.status_code}")
