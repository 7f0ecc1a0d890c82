"""A load balancer in front of a site's web processes, as far as a test needs one: TCP, in turn, past the dead."""

import asyncio
import threading
from collections.abc import Sequence
from contextlib import suppress
from itertools import count

CHUNK_BYTES = 64 * 1024
START_TIMEOUT_S = 5


class Balancer:
    """Listens on a port of its own, in a thread; a connection goes to the next web process that takes it."""

    def __init__(self, *, port: int, backends: Sequence[int]) -> None:
        self._port = port
        self._backends = backends
        self._turn = count()
        self._event_loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._event_loop.run_forever, daemon=True)

    def start(self) -> None:
        self._thread.start()
        listening = asyncio.start_server(self._forward, "127.0.0.1", self._port)
        self._server = asyncio.run_coroutine_threadsafe(listening, self._event_loop).result(START_TIMEOUT_S)

    def stop(self) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._event_loop).result(START_TIMEOUT_S)
        self._event_loop.call_soon_threadsafe(self._event_loop.stop)
        self._thread.join(START_TIMEOUT_S)
        self._event_loop.close()

    async def _end(self) -> None:
        """Stop listening and cut every connection."""
        self._server.close()
        running = asyncio.all_tasks() - {asyncio.current_task()}
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        backend = await self._connect()
        if backend is not None:
            await asyncio.gather(_pump(reader, backend[1]), _pump(backend[0], writer))
        writer.close()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        first = next(self._turn)
        for offset in range(len(self._backends)):
            with suppress(OSError):
                port = self._backends[(first + offset) % len(self._backends)]
                return await asyncio.open_connection("127.0.0.1", port)
        return None


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Carry bytes one way until either side ends, and pass the end on."""
    try:
        while chunk := await reader.read(CHUNK_BYTES):
            writer.write(chunk)
            await writer.drain()
    except ConnectionError:
        pass
    finally:
        writer.close()
