"""The ASGI handler: one crossing into a thread, which serves again; nobody waits for another."""

import asyncio
import threading
from typing import Any

import pytest
from django.core.signals import request_finished, request_started
from django.db import close_old_connections
from django.http import HttpRequest, HttpResponse
from django.test import override_settings
from django.urls import path

from marketplace.http_threads import IDLE_THREADS, ThreadsHandler

seen: list[int] = []
gate = threading.Event()
inside = threading.Semaphore(0)


def quick(request: HttpRequest) -> HttpResponse:
    seen.append(threading.get_ident())
    return HttpResponse("quick")


def slow(request: HttpRequest) -> HttpResponse:
    seen.append(threading.get_ident())
    inside.release()
    assert gate.wait(20)
    return HttpResponse("slow")


def broken(request: HttpRequest) -> HttpResponse:
    raise ValueError("of our own")


def handler500(request: HttpRequest) -> HttpResponse:
    return HttpResponse(status=500)


urlpatterns = [path("quick/", quick), path("slow/", slow), path("broken/", broken)]
pytestmark = pytest.mark.timeout(60)


@pytest.fixture(autouse=True)
def _fresh():
    seen.clear()
    gate.clear()
    for signal in (request_started, request_finished):  # the test's own connection is none of theirs to close
        signal.disconnect(close_old_connections)
    with override_settings(ROOT_URLCONF=__name__, ALLOWED_HOSTS=["testserver"]):
        yield
    for signal in (request_started, request_finished):
        signal.connect(close_old_connections)


async def ask(handler: ThreadsHandler, address: str, leaves: asyncio.Event | None = None) -> int | None:
    """The status; None if whoever asked `leaves` before there was one."""
    statuses: list[int] = []
    asked = False

    async def receive() -> dict[str, Any]:
        nonlocal asked
        if not asked:
            asked = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await (leaves or asyncio.Event()).wait()
        return {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    scope = {
        "type": "http",
        "method": "GET",
        "path": address,
        "query_string": b"",
        "headers": [(b"host", b"testserver")],
    }
    await handler(scope, receive, send)
    return statuses[0] if statuses else None


def test_one_after_another_they_share_a_thread():
    handler = ThreadsHandler()

    async def story() -> list[int | None]:
        return [await asyncio.create_task(ask(handler, "/quick/")) for _ in range(3)]

    assert asyncio.run(story()) == [200] * 3
    assert len(set(seen)) == 1


def test_at_once_each_has_its_own_and_few_are_kept():
    handler = ThreadsHandler()
    many = IDLE_THREADS + 3

    async def story() -> list[int | None]:
        asked = [asyncio.create_task(ask(handler, "/slow/")) for _ in range(many)]
        await asyncio.to_thread(lambda: [inside.acquire(timeout=20) for _ in range(many)])
        gate.set()
        return await asyncio.gather(*asked)

    assert asyncio.run(story()) == [200] * many
    assert len(set(seen)) == many
    assert len(handler._idle) == IDLE_THREADS


def test_nobody_waits_behind_a_view_that_whoever_asked_has_left():
    handler = ThreadsHandler()

    async def story() -> list[int | None]:
        leaves = asyncio.Event()
        asked = asyncio.create_task(ask(handler, "/slow/", leaves))
        await asyncio.to_thread(inside.acquire)
        leaves.set()
        after = await asyncio.create_task(ask(handler, "/quick/"))
        gate.set()
        return [await asked, after]

    assert asyncio.run(story()) == [None, 200]
    assert len(set(seen)) == 2


def test_a_view_that_fails_gives_its_thread_back():
    handler = ThreadsHandler()

    async def story() -> list[int | None]:
        return [await asyncio.create_task(ask(handler, address)) for address in ("/broken/", "/quick/")]

    assert asyncio.run(story()) == [500, 200]
    assert len(handler._idle) == 1
