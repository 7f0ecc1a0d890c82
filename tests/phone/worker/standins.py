"""A stand-in for a site's socket, for tests that are not coroutines: its loop runs in a thread of its own."""

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from tests.worker_protocol.sites import SocketSite, socket_site
from worker_protocol.wire import messages as msg

PATIENCE_S = 90  # a bound on hanging, not on slowness
_ResultT = TypeVar("_ResultT")
_MessageT = TypeVar("_MessageT", bound=msg.Message)


class Site:
    """`SocketSite`, one call at a time."""

    def __init__(self, loop: asyncio.AbstractEventLoop, site: SocketSite) -> None:
        self._loop = loop
        self.socket = site

    @property
    def url(self) -> str:
        return self.socket.url

    @property
    def hellos(self) -> list[msg.Hello]:
        return self.socket.hellos

    def hears(self, kind: type[_MessageT]) -> _MessageT:
        return self._run(self.socket.hears(kind))

    def hears_step(self) -> msg.Progress:
        """The first progress beyond the confirmation: the lease is being trained."""
        while (progress := self.hears(msg.Progress)).step == 0:
            pass
        return progress

    def says(self, message: msg.Message) -> None:
        self._run(self.socket.says(message))

    def drops(self) -> None:
        self._run(self.socket.drops())

    def closes(self, close_code: int) -> None:
        self._run(self.socket.closes(close_code))

    def ended(self) -> int | None:
        """The close code of the next socket to end."""
        return self._run(self.socket.ended.get())

    def drain(self) -> list[msg.Message]:
        async def drained() -> list[msg.Message]:
            return self.socket.drain()

        return self._run(drained())

    def _run(self, work: Coroutine[Any, Any, _ResultT]) -> _ResultT:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE_S)


@contextmanager
def stand_in(port: int = 0) -> Iterator[Site]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    opened = socket_site(port, patience_s=PATIENCE_S, answers_status=True)
    try:
        site = asyncio.run_coroutine_threadsafe(opened.__aenter__(), loop).result(PATIENCE_S)
        yield Site(loop, site)
        asyncio.run_coroutine_threadsafe(opened.__aexit__(None, None, None), loop).result(PATIENCE_S)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(PATIENCE_S)
        loop.close()
