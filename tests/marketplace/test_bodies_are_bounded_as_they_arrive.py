"""No body, declared or not, takes more of the server's memory than the largest upload."""

import pytest
from daphne.http_protocol import HTTPFactory, WebRequest
from daphne.server import Server
from twisted.internet.testing import StringTransport

from marketplace import body_bound
from marketplace.body_bound import bodies_bound

LIMIT_BYTES = 1_000
HEAD = b"POST /api/devices/pair/ HTTP/1.1\r\nHost: localhost\r\n"


@pytest.fixture
def arrivals(monkeypatch, settings) -> list[int]:
    """How many bytes of body each request let through to daphne."""
    settings.MAX_DATASET_BYTES = LIMIT_BYTES
    monkeypatch.setattr(body_bound, "FORM_BYTES", 0)
    sizes: list[int] = []

    def process(request: WebRequest) -> None:
        assert request.content is not None
        sizes.append(len(request.content.read()))
        request.content.close()

    monkeypatch.setattr(WebRequest, "process", process)
    return sizes


def answer_to(request: bytes) -> bytes:
    """What daphne answers to these bytes from a socket."""
    server = Server(application=None, endpoints=["tcp:0"])
    server.connections = {}  # these two are made when it runs
    server.http_factory = HTTPFactory(server)
    bodies_bound(server)
    transport = StringTransport()
    protocol = server.http_factory.buildProtocol(transport.getPeer())
    protocol.makeConnection(transport)
    protocol.dataReceived(request)
    return bytes(transport.value())


def with_length(size_bytes: int) -> bytes:
    return HEAD + b"Content-Length: %d\r\n\r\n" % size_bytes + b"a" * size_bytes


def in_chunks(size_bytes: int) -> bytes:
    return (
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n" % size_bytes + b"a" * size_bytes + b"\r\n0\r\n\r\n"
    )


@pytest.mark.parametrize("spell", [with_length, in_chunks])
def test_a_body_at_the_bound_gets_through(arrivals, spell):
    answer_to(spell(LIMIT_BYTES))
    assert arrivals == [LIMIT_BYTES]


@pytest.mark.parametrize("spell", [with_length, in_chunks])
def test_a_body_over_the_bound_is_dropped_and_answered(arrivals, spell):
    answer = answer_to(spell(LIMIT_BYTES + 1))
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b"at most 1,000 bytes" in answer
    assert arrivals == []
