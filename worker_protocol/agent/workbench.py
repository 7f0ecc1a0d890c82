"""The one lease under way, and the reports that the server has not answered yet.

Both outlive a socket: while none is open, work goes on and reports wait.
"""

import asyncio
import hashlib
import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from worker_protocol.agent.errors import LeaseFailed
from worker_protocol.agent.progress import Display
from worker_protocol.agent.trainer import Stopped, Task, Trained, Trainer
from worker_protocol.agent.transport import Transport
from worker_protocol.wire import messages as msg

log = logging.getLogger("nightshift.agent")

# A result is said again this long after the last time; a hand-back that is not refused by then has arrived.
REPEAT_MS = 10_000
# Waiting for a site that is away is given up when the lease is over, but not sooner than this.
MIN_PATIENCE_S = 60.0
# How long after `busy` a report is said again.
BUSY_MS = 1_000
PROGRESS_MS = 1_000


@dataclass(slots=True)
class _Report:
    message: msg.Result | msg.Handback
    due_ms: int  # when to say it again (a result) or to forget it (a hand-back)
    refused: bool = False  # the server was busy


class Workbench:
    """Takes leases, works on one at a time, and says what became of each.

    `say` puts a message on the socket, if there is one. All methods are called on the event loop.
    """

    def __init__(
        self,
        *,
        transport: Transport,
        trainer: Trainer,
        display: Display,
        memory_bytes: int,
        say: Callable[[msg.Message], None],
        clock_ms: Callable[[], int],
    ) -> None:
        self._transport = transport
        self._trainer = trainer
        self._display = display
        self._memory_bytes = memory_bytes
        self._say = say
        self._clock_ms = clock_ms
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="trainer")
        self._lease: msg.Lease | None = None
        self._task: asyncio.Task[None] | None = None
        self._step = 0
        self._step_said = 0
        self._progress_due_ms = 0
        self._reports: dict[str, _Report] = {}

    @property
    def is_free(self) -> bool:
        return self._lease is None

    @property
    def held(self) -> list[str]:
        """Leases to name when logging in: the one under way, and those whose result waits for an answer."""
        waiting = [
            lease_id for lease_id, report in self._reports.items() if isinstance(report.message, msg.Result)
        ]
        under_way = [self._lease.lease_id] if self._lease is not None else []
        return (under_way + waiting)[: msg.MAX_HELD_LEASES]

    def warm_up(self) -> None:
        """Have the training's libraries loaded before the first lease comes."""
        self._thread.submit(self._trainer.warm_up)

    # ---- what the server says

    def take(self, lease: msg.Lease) -> None:
        """Start on a lease; one that is here already is only confirmed again."""
        if lease.lease_id in self._reports:
            self._say_report(self._reports[lease.lease_id])
        elif self._lease is None:
            self._lease, self._step, self._step_said = lease, 0, 0
            self._say(msg.Progress(lease_id=lease.lease_id, step=0))
            self._display.started(lease.steps)
            self._task = asyncio.create_task(self._work(lease))
        elif self._lease.lease_id == lease.lease_id:
            self._say(msg.Progress(lease_id=lease.lease_id, step=self._step))
        else:
            self._say(msg.Handback(lease_id=lease.lease_id, reason="busy"))

    def revoke(self, revoke: msg.Revoke) -> None:
        self._reports.pop(revoke.lease_id, None)
        if self._lease is not None and self._lease.lease_id == revoke.lease_id:
            self._stop(f"the lease was revoked ({revoke.reason})")

    def acknowledge(self, ack: msg.Ack) -> None:
        if self._reports.pop(ack.lease_id, None) is None:
            return
        self._display.say(
            f"result accepted, earned {ack.earned_microusd} micro-USD"
            if ack.accepted
            else f"result refused: {ack.code}"
        )

    def refused_as_busy(self, lease_id: str) -> None:
        report = self._reports.get(lease_id)
        if report is not None:
            report.refused = True
            report.due_ms = self._clock_ms() + BUSY_MS

    # ---- what the device decides

    def hand_back(self, reason: msg.HandbackReason) -> None:
        """Give the lease under way back, if there is one."""
        if self._lease is not None:
            lease_id = self._lease.lease_id
            self._stop(f"the lease was handed back ({reason})")
            self._report(msg.Handback(lease_id=lease_id, reason=reason))

    def on_new_socket(self) -> None:
        """Say again what the server may have missed."""
        for report in self._reports.values():
            self._say_report(report)
        if self._lease is not None:
            self._say(msg.Progress(lease_id=self._lease.lease_id, step=self._step))

    def tick(self) -> None:
        """Show and tell the progress; repeat or forget reports when their time has come."""
        now_ms = self._clock_ms()
        if self._lease is not None:
            self._display.stepped(self._step)
            if self._step > self._step_said and now_ms >= self._progress_due_ms:
                self._step_said = self._step
                self._progress_due_ms = now_ms + PROGRESS_MS
                self._say(msg.Progress(lease_id=self._lease.lease_id, step=self._step_said))
        for lease_id, report in list(self._reports.items()):
            if now_ms >= report.due_ms:
                if report.refused or isinstance(report.message, msg.Result):
                    self._say_report(report)
                else:
                    del self._reports[lease_id]

    def close(self) -> None:
        """Stop the thread; it ends within a step."""
        self._stop("stopping")
        self._thread.shutdown(wait=False, cancel_futures=True)

    # ---- the work

    async def _work(self, lease: msg.Lease) -> None:
        try:
            message: msg.Result | msg.Handback = await self._result_of(lease)
            ending = "lease done, waiting for the server's check"
        except LeaseFailed as failure:
            message = _handback(lease, failure.reason, failure.detail)
            ending = f"lease handed back ({failure.reason}): {failure.detail}"
        except Exception as error:
            log.exception("a lease failed")
            message = _handback(lease, "error", type(error).__name__)
            ending = "lease handed back (error)"
        self._lease = None
        self._display.ended(ending)
        self._report(message)
        self._say(msg.Ready())

    async def _result_of(self, lease: msg.Lease) -> msg.Result:
        trained = await self._train(lease)
        await self._transport.upload(lease.upload_url, trained.delta, patience_s=_patience_s(lease))
        return msg.Result(
            lease_id=lease.lease_id,
            delta_sha256=hashlib.sha256(trained.delta).hexdigest(),
            delta_bytes=len(trained.delta),
            gpu_us=trained.gpu_us,
            steps=len(trained.losses),
            losses=trained.losses,
        )

    async def _train(self, lease: msg.Lease) -> Trained:
        """Fetch, checking at each step that it fits, then train in the thread."""
        self._refuse_if_too_big(lease.program.size_bytes + lease.params.size_bytes + lease.slice.size_bytes)
        fetch = partial(self._transport.fetch, patience_s=_patience_s(lease))
        program = await fetch(lease.program)
        step_bytes = await asyncio.to_thread(self._trainer.memory_bytes, program)
        self._refuse_if_too_big(step_bytes + lease.slice.size_bytes)
        task = Task(
            params=await fetch(lease.params),
            slice=await fetch(lease.slice),
            steps=lease.steps,
            batch_size=lease.batch_size,
            seed=lease.seed,
            learning_rate=lease.learning_rate,
        )
        stop = threading.Event()
        on_step = partial(self._stepped, lease.lease_id)
        train = partial(self._trainer.train, program, task, stop=stop, on_step=on_step)
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, train)
        except Stopped:
            raise asyncio.CancelledError from None
        finally:
            stop.set()  # also when this task is cancelled, which the thread does not notice by itself

    def _stepped(self, lease_id: str, step: int) -> None:
        """Called in the thread, at times for a lease that has just been given up; `tick` looks at it."""
        if self._lease is not None and self._lease.lease_id == lease_id:
            self._step = step

    def _refuse_if_too_big(self, needed_bytes: int) -> None:
        if needed_bytes > self._memory_bytes:
            raise LeaseFailed(
                "too_big", f"needs {needed_bytes} bytes of memory, this device gives {self._memory_bytes}"
            )

    def _stop(self, why: str) -> None:
        if self._lease is not None and self._task is not None:
            self._task.cancel()
            self._lease = self._task = None
            self._display.ended(why)

    # ---- the reports

    def _report(self, message: msg.Result | msg.Handback) -> None:
        report = self._reports[message.lease_id] = _Report(message, due_ms=0)
        self._say_report(report)

    def _say_report(self, report: _Report) -> None:
        report.refused = False
        report.due_ms = self._clock_ms() + REPEAT_MS
        self._say(report.message)


def _patience_s(lease: msg.Lease) -> float:
    return max(MIN_PATIENCE_S, lease.time_left_ms / 1000)


def _handback(lease: msg.Lease, reason: msg.HandbackReason, detail: str) -> msg.Handback:
    return msg.Handback(lease_id=lease.lease_id, reason=reason, detail=detail[: msg.MAX_SHORT_CHARACTERS])
