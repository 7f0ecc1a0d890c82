"""Static files come compressed to whoever takes that, and pages never do."""

import gzip
from pathlib import Path

import pytest
from django.http import HttpResponse
from django.test import Client

from marketplace.static_files import StaticFilesMiddleware
from worker_protocol.app_shell import STATIC

MAIN = "worker_protocol/app/main.js"
GZIP = {"accept-encoding": "gzip, deflate, br"}


def fetched(address: str, headers: dict[str, str] | None = None) -> tuple[str | None, bytes]:
    """Content-Encoding and body."""
    response = Client().get(address, headers=headers)
    assert response.status_code == 200
    return response.get("Content-Encoding"), b"".join(response)


def test_a_browser_gets_the_same_file_in_fewer_bytes() -> None:
    plain = (STATIC / MAIN).read_bytes()
    encoding, body = fetched(f"/static/{MAIN}", GZIP)
    assert encoding == "gzip"
    assert gzip.decompress(body) == plain
    assert len(body) < len(plain) / 2
    assert fetched(f"/static/{MAIN}") == (None, plain)


def test_caches_are_told_that_there_are_two() -> None:
    response = Client().head(f"/static/{MAIN}")
    assert response["Vary"] == "Accept-Encoding"
    assert response["Content-Type"].startswith("text/javascript")


def test_pictures_are_sent_as_they_are() -> None:
    icon = "worker_protocol/app/icons/icon-192.png"
    assert fetched(f"/static/{icon}", GZIP) == (None, (STATIC / icon).read_bytes())


def test_a_changed_file_is_compressed_anew(tmp_path: Path) -> None:
    middleware = StaticFilesMiddleware(lambda _request: HttpResponse())
    file = tmp_path / "changing.js"
    for text in ("// the first version\n" * 9, "// the second one\n" * 9):
        file.write_text(text)
        served = middleware.get_static_file(str(file), "/static/changing.js")
        with served.get_response("GET", {"HTTP_ACCEPT_ENCODING": "gzip"}).file as body:
            assert gzip.decompress(body.read()).decode() == text


@pytest.mark.django_db
@pytest.mark.parametrize("address", ["/", "/log-in/", "/device/"])
def test_pages_are_never_compressed(address: str) -> None:
    assert fetched(address, GZIP)[0] is None
