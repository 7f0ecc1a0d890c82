"""The dispatcher's core without the event loop: mail in, one transaction, instructions out.

A turn renews the lock, steps the state machine, stores what changed and deletes the rows it has read, all in one
transaction. If any of it fails nothing has happened, and the state in memory, which has moved on, is thrown away.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID, uuid4

import msgspec
from django.db import transaction

from accounts.models import DeviceNews
from common.clock import utc_now
from common.outbox import OutboxRow
from scheduler import store
from scheduler.domain import events as ev
from scheduler.domain import machine
from scheduler.domain.instructions import Instruction
from scheduler.domain.state import LeaseState, State
from scheduler.lock import lock_claim, lock_release, lock_renew
from scheduler.models import Inbox

log = logging.getLogger(__name__)

# Rows read in one turn; the rest is read in the next.
ROWS_MAX = 500

_INBOX_EVENTS: dict[str, type[ev.InboxEvent]] = {
    event.__name__: event
    for event in (
        ev.ResultChecked,
        ev.RunAdded,
        ev.RunCancelled,
        ev.RunPaused,
        ev.RunResumed,
        ev.RoundAggregated,
        ev.RoundFailed,
    )
}
_DEVICE_NEWS: dict[str, type[ev.DeviceChanged | ev.DeviceRemoved]] = {
    "changed": ev.DeviceChanged,
    "removed": ev.DeviceRemoved,
}


@dataclass(frozen=True, slots=True)
class Mail:
    """An event, and the row that brought it unless it came from a socket."""

    event: ev.Event
    row: OutboxRow | None = None


class Engine:
    """Holds the state between turns. One process at a time has one that is started."""

    def __init__(
        self,
        *,
        holder: str,
        clock: Callable[[], datetime] = utc_now,
        new_id: Callable[[], UUID] = uuid4,
    ) -> None:
        self._holder = holder
        self._clock = clock
        self._new_id = new_id
        self._state: State | None = None

    @property
    def state(self) -> State:
        if self._state is None:
            raise RuntimeError("the engine is not started")
        return self._state

    def start(self) -> list[Instruction] | None:
        """Load the state and take up what was left open; None while another process holds the lock."""
        now = self._clock()
        with transaction.atomic():
            if not lock_claim(holder=self._holder, now=now):
                return None
            self._state = None
            state = store.load()
            outcome = machine.recover(state, now=now, new_id=self._new_id)
            store.save(outcome)
        self._state = state
        return outcome.instructions

    def stop(self) -> None:
        """Forget the state and let another process take over."""
        self._state = None
        lock_release(holder=self._holder, now=self._clock())

    def collect(self) -> list[Mail]:
        """News of services, tasks and owners, oldest first. A row that nobody can read is logged and deleted."""
        rows: list[OutboxRow] = [*Inbox.objects.all()[:ROWS_MAX], *DeviceNews.objects.all()[:ROWS_MAX]]
        mail = []
        for row in rows:
            try:
                mail.append(Mail(_event_of(row), row))
            except (KeyError, msgspec.ValidationError):
                log.exception("cannot read %s %s; it is dropped", type(row).__name__, row)
                row.delete()
        return mail

    def turn(self, mail: Sequence[Mail]) -> list[Instruction]:
        """Handle a batch of mail in one transaction and return what is to be sent now that it is stored."""
        state, self._state = self.state, None  # unless all goes well, the state has to be loaded anew
        now = self._clock()
        batch = [*(item.event for item in mail), ev.Tick()]
        with transaction.atomic():
            lock_renew(holder=self._holder, now=now)
            store.recall(state, run_ids=_run_ids(batch), lease_ids=_lease_ids(batch))
            _log_blame(state, batch)
            outcome = machine.step(state, batch, now=now, new_id=self._new_id)
            store.save(outcome)
            _delete_rows(mail)
        self._state = state
        return outcome.instructions

    def discard(self, item: Mail) -> None:
        """Drop mail that cannot be handled, so that it does not stop all other mail."""
        if item.row is not None:
            item.row.delete()


def _event_of(row: OutboxRow) -> ev.Event:
    kinds = _INBOX_EVENTS if isinstance(row, Inbox) else _DEVICE_NEWS
    return msgspec.convert(row.payload, kinds[row.kind])


def _delete_rows(mail: Sequence[Mail]) -> None:
    for model in (Inbox, DeviceNews):
        ids = [item.row.pk for item in mail if isinstance(item.row, model)]
        if ids:
            model.objects.filter(pk__in=ids).delete()


def _run_ids(batch: Sequence[ev.Event]) -> list[UUID]:
    return [event.run_id for event in batch if isinstance(event, ev.RunAdded)]


def _lease_ids(batch: Sequence[ev.Event]) -> list[UUID]:
    named = [event.lease_id for event in batch if isinstance(event, ev.ResultReported | ev.LeaseProgress)]
    resumed = [i for event in batch if isinstance(event, ev.DeviceConnected) for i in event.resumed]
    return named + resumed


def _log_blame(state: State, batch: Sequence[ev.Event]) -> None:
    """Note with the device what speaks against it. Its own words are quoted, so that they cannot pass for ours."""
    for event in batch:
        match event:
            case ev.LeaseHandedBack(reason=reason, detail=detail) if reason in ev.BLAMED:
                log.warning(
                    "device %s handed lease %s back: %s %r", event.device_id, event.lease_id, reason, detail
                )
            case ev.ResultReported() if not _is_its_own(state.lease(event.lease_id), event.device_id):
                log.warning(
                    "device %s reported a result for lease %s, which is not its own",
                    event.device_id,
                    event.lease_id,
                )


def _is_its_own(lease: LeaseState | None, device_id: UUID) -> bool:
    return lease is not None and lease.device_id == device_id
