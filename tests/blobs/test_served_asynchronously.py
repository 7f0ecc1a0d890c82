"""Under the asynchronous server a blob is sent in small pieces, and its file is closed whatever the client does."""

import time
from typing import Any

import pytest
from asgiref import testing
from django.core.handlers.asgi import ASGIHandler

from blobs import streaming
from blobs.services import blob_put, read_url, upload_url
from blobs.store import CHUNK_BYTES
from tests.blobs.cast import CONTENT, local, sha256_of

pytestmark = pytest.mark.django_db(transaction=True)

LARGE = bytes(range(256)) * 10_000  # some ten pieces


def ask(method: str, address: str, body: bytes = b"", **headers: str) -> Any:
    """A request on its way to Django, as an asynchronous server passes it on."""
    path, query = address.split("?")
    given = {"Host": "localhost"} | headers
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": method,
        "path": path,
        "query_string": query.encode(),
        "headers": [(name.lower().encode(), value.encode()) for name, value in given.items()],
    }
    communicator: Any = testing.ApplicationCommunicator(ASGIHandler(), scope)
    communicator.input_queue.put_nowait({"type": "http.request", "body": body})
    return communicator


async def answer(communicator: Any) -> tuple[int, list[bytes]]:
    start = await communicator.receive_output(10)
    pieces = []
    more = True
    while more:
        message = await communicator.receive_output(10)
        pieces.append(message.get("body", b""))
        more = message.get("more_body", False)
    await communicator.wait(10)
    return start["status"], [piece for piece in pieces if piece]


@pytest.fixture
def address() -> str:
    blob = blob_put(data=LARGE, holder="dataset:1")
    return local(read_url(sha256=blob.sha256, reader="device:1"))


async def test_a_blob_comes_in_small_pieces(address):
    status, pieces = await answer(ask("GET", address))
    assert (status, b"".join(pieces)) == (200, LARGE)
    assert len(pieces) >= len(LARGE) // CHUNK_BYTES
    assert max(map(len, pieces)) <= CHUNK_BYTES


async def test_a_range_is_served_too(address):
    status, pieces = await answer(ask("GET", address, Range="bytes=300000-899999"))
    assert (status, b"".join(pieces)) == (206, LARGE[300_000:900_000])


async def test_an_upload_is_taken():
    address = local(upload_url(subject="lease:1", max_bytes=20_000))
    headers = {"X-Content-SHA256": sha256_of(CONTENT), "Content-Length": str(len(CONTENT))}
    status, _ = await answer(ask("PUT", address, CONTENT, **headers))
    assert status == 201


async def test_a_client_that_goes_away_leaves_no_file_open(address, monkeypatch):
    read: list[streaming.FilePart] = []
    read_chunk = streaming.FilePart.read_chunk

    def read_slowly(self: streaming.FilePart) -> bytes:
        read.append(self)
        time.sleep(0.05)
        return read_chunk(self)

    monkeypatch.setattr(streaming.FilePart, "read_chunk", read_slowly)
    communicator = ask("GET", address)
    await communicator.receive_output(10)  # the start
    await communicator.receive_output(10)  # and a first piece
    await communicator.send_input({"type": "http.disconnect"})
    await communicator.wait(10)
    assert 0 < len(read) < len(LARGE) / CHUNK_BYTES
    assert read[0]._file.closed
