"""The loop that runs the scheduler: mail of devices, services and tasks in, instructions out.

It lives in the server's event loop. The database is used in threads, and so are checks and outer steps unless
Celery workers do them, so that sockets go on meanwhile. Several processes may run a dispatcher: one holds the lock
and dispatches, the others stand by.
"""

import asyncio
import contextlib
import logging
import os
import socket
import time
from typing import Any
from uuid import uuid4

import msgspec
from channels.db import database_sync_to_async
from channels.exceptions import ChannelFull
from django.db import Error as DatabaseError

from common.wake import DISPATCHER, channel_layer
from scheduler import fleet
from scheduler.domain.instructions import AggregateRound, CheckResult, Instruction, TaskInstruction
from scheduler.engine import Engine, Mail
from scheduler.errors import LockLost
from scheduler.tasks import aggregate_round, check_result, prune_spells

log = logging.getLogger(__name__)

TICK_S = 1.0
STAND_BY_S = 2.0
BACKOFF_MAX_S = 30.0
QUEUE_MAX = 1_000  # beyond it the channel fills, and sockets are told to wait
BATCH_MAX = 500
CHECKS_AT_ONCE = 4
PRUNE_EVERY_S = 3_600.0


class Dispatcher:
    """`run()` dispatches until it is cancelled; it survives every failure of a batch, a task or the database."""

    def __init__(self, *, engine: Engine | None = None, tick_s: float = TICK_S) -> None:
        self._engine = engine or Engine(holder=f"{socket.gethostname()}:{os.getpid()}:{uuid4().hex[:8]}")
        self._tick_s = tick_s
        self._mail: asyncio.Queue[Mail | None] = asyncio.Queue(QUEUE_MAX)  # None: look at the database
        self._tasks: dict[TaskInstruction, asyncio.Task[None]] = {}
        self._failures = 0  # in a row
        self._pruned_at_s: float | None = None
        self._pruning: asyncio.Task[None] | None = None
        self._aggregating = asyncio.Semaphore(1)
        self._checking = asyncio.Semaphore(CHECKS_AT_ONCE)

    async def run(self) -> None:
        try:
            while True:
                try:
                    await self._stand_by()
                    await self._dispatch()
                except LockLost as lost:
                    log.warning("%s", lost)
                except Exception:
                    self._failures += 1
                    log.exception("dispatching failed; the state is loaded anew")
                    await asyncio.sleep(min(0.1 * 2 ** min(self._failures, 16), BACKOFF_MAX_S))
        finally:
            for task in [*self._tasks.values(), *filter(None, [self._pruning])]:
                task.cancel()
            await database_sync_to_async(self._engine.stop)()

    async def _stand_by(self) -> None:
        """Wait for the lock, load the state, and let every device that is connected say so."""
        while (instructions := await database_sync_to_async(self._engine.start)()) is None:
            await asyncio.sleep(STAND_BY_S)
        await self._carry_out(instructions)
        await channel_layer().group_send(fleet.FLEET_GROUP, fleet.ANNOUNCE)

    async def _dispatch(self) -> None:
        """Turn after turn until something fails. Only who dispatches reads the channel: it has one reader."""
        reader = asyncio.create_task(self._read_channel())
        try:
            while not reader.done():
                mail = await self._next_mail()
                mail += await database_sync_to_async(self._engine.collect)()
                await self._turn(mail)
                self._failures = 0
                self._prune_when_due()
            await reader  # raises what ended it
        finally:
            reader.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await reader

    async def _turn(self, mail: list[Mail]) -> None:
        try:
            await self._carry_out(await database_sync_to_async(self._engine.turn)(mail))
        except (LockLost, DatabaseError):
            self._put_back(mail)
            raise
        except Exception:
            log.exception("a batch of %d failed; its mail is tried one by one", len(mail))
            await self._turn_one_by_one(mail)

    async def _turn_one_by_one(self, mail: list[Mail]) -> None:
        """Find the mail that cannot be handled and drop it, so that the rest gets through."""
        await self._stand_by()
        for item in mail:
            try:
                await self._carry_out(await database_sync_to_async(self._engine.turn)([item]))
            except (LockLost, DatabaseError):
                raise
            except Exception:
                log.exception("dropped, as it cannot be handled: %s", item.event)
                await database_sync_to_async(self._engine.discard)(item)
                await self._stand_by()

    def _put_back(self, mail: list[Mail]) -> None:
        """Keep device events of a batch that was not stored; rows are still in the database."""
        for item in mail:
            if item.row is None and not self._mail.full():
                self._mail.put_nowait(item)

    def _prune_when_due(self) -> None:
        """The owners' record of their devices is bounded by the one process that writes it."""
        now_s = time.monotonic()
        if self._pruned_at_s is None or now_s - self._pruned_at_s >= PRUNE_EVERY_S:
            self._pruned_at_s = now_s
            self._pruning = asyncio.create_task(self._prune())

    async def _prune(self) -> None:
        try:
            await _in_thread(prune_spells.delay)()
        except Exception:
            log.exception("old records of devices could not be deleted; it is tried again in an hour")

    # ---- mail ----------------------------------------------------------------------------------------------------

    async def _read_channel(self) -> None:
        layer = channel_layer()
        while True:
            message = await layer.receive(DISPATCHER)
            if message["type"] == "wake":
                self._nudge()
                continue
            try:
                await self._mail.put(Mail(fleet.event_from_message(message)))
            except (KeyError, msgspec.ValidationError):
                log.exception("an unreadable message was dropped")

    async def _next_mail(self) -> list[Mail]:
        """The mail that is there, or that comes within a tick."""
        batch: list[Mail | None] = []
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._tick_s):
                batch.append(await self._mail.get())
        while len(batch) < BATCH_MAX and not self._mail.empty():
            batch.append(self._mail.get_nowait())
        return [item for item in batch if item is not None]

    def _nudge(self) -> None:
        if not self._mail.full():  # a full queue is looked at anyway
            self._mail.put_nowait(None)

    # ---- instructions --------------------------------------------------------------------------------------------

    async def _carry_out(self, instructions: list[Instruction]) -> None:
        layer = channel_layer()
        for instruction in instructions:
            if isinstance(instruction, CheckResult | AggregateRound):
                self._begin(instruction)
                continue
            try:
                await layer.send(instruction.session_id, fleet.instruction_to_message(instruction))
            except ChannelFull:  # leases are sent again, and devices repeat what is not answered
                log.warning("the socket's channel is full: %s", instruction)
            except Exception as error:  # the turn is stored all the same; only its message is lost
                log.warning("the channel layer fails (%s): %s is lost", error, instruction)

    def _begin(self, instruction: TaskInstruction) -> None:
        if instruction not in self._tasks:
            task = asyncio.create_task(self._run_task(instruction))
            self._tasks[instruction] = task
            task.add_done_callback(lambda _: self._tasks.pop(instruction, None))

    async def _run_task(self, instruction: TaskInstruction) -> None:
        """Send a task to Celery; embedded, it runs here in a thread. If it fails it is asked for again later."""
        try:
            if isinstance(instruction, CheckResult):
                async with self._checking:
                    await _in_thread(check_result.delay)(str(instruction.lease_id))
            else:
                async with self._aggregating:
                    await _in_thread(aggregate_round.delay)(str(instruction.run_id), instruction.round_index)
        except Exception:
            log.exception("task failed: %s", instruction)
        self._nudge()


def _in_thread(function: Any) -> Any:
    """Run beside the event loop and beside the thread that all other database work shares."""
    return database_sync_to_async(function, thread_sensitive=False)
