"""The loop: it wakes, batches, sends, and survives whatever fails."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any
from uuid import UUID

import pytest
from channels.db import database_sync_to_async
from channels.layers import channel_layers
from django.db import OperationalError

from accounts.models import DeviceNews
from common.wake import DISPATCHER, channel_layer
from scheduler import fleet
from scheduler.dispatcher import Dispatcher
from scheduler.domain import events as ev
from scheduler.domain import instructions as ins
from scheduler.domain import machine
from scheduler.engine import Engine
from scheduler.models import DispatcherLock, Inbox, Lease, Run
from scheduler.selectors import lease_for_device
from scheduler.services import run_cancel, run_start

from .fleet_of import Clock
from .training import digits_run, train
from .world import ADA, BO, CY, connected, spec

pytestmark = pytest.mark.django_db(transaction=True)

TICK_S = 0.02


@pytest.fixture(autouse=True)
def _fresh_channel_layer():
    channel_layers.backends.clear()
    yield
    channel_layers.backends.clear()


@asynccontextmanager
async def dispatching(clock: Clock | None = None) -> AsyncIterator[Dispatcher]:
    engine = Engine(holder="one", clock=clock) if clock else None
    dispatcher = Dispatcher(engine=engine, tick_s=TICK_S)
    task = asyncio.create_task(dispatcher.run())
    try:
        yield dispatcher
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


class Socket:
    """A device's end of the channel layer."""

    def __init__(self, device: UUID) -> None:
        self.device = device
        self.layer = channel_layer()
        self.channel = f"specific.inmemory!{device}"

    async def connect(self, **changes: Any) -> None:
        await self.layer.group_add(fleet.FLEET_GROUP, self.channel)
        await self.send(connected(self.device, session_id=self.channel, **changes))

    async def send(self, event: ev.DeviceEvent) -> None:
        await self.layer.send(DISPATCHER, fleet.event_to_message(event))

    async def next(self, kind: type[Any]) -> Any:
        async with asyncio.timeout(20):
            while True:
                message = await self.layer.receive(self.channel)
                if message["type"] == "device.instruction":
                    instruction = fleet.instruction_from_message(message)
                    if isinstance(instruction, kind):
                        return instruction

    async def work(self) -> None:
        """Train every lease that comes, and report until cancelled."""
        while True:
            lease = await self.next(ins.SendLease)
            await self.send(ev.LeaseProgress(self.device, lease.lease_id, 0))
            work = await database_sync_to_async(lease_for_device)(lease.lease_id)
            if work is not None and work.live:
                await self.send(await database_sync_to_async(train)(work))


@database_sync_to_async
def start(**changes: Any) -> Run:
    return run_start(spec=spec(**changes))


async def eventually(holds: Callable[[], bool], seconds: float = 30) -> None:
    asked: Callable[[], Awaitable[bool]] = database_sync_to_async(holds)
    async with asyncio.timeout(seconds):
        while not await asked():
            await asyncio.sleep(0.02)


async def test_devices_train_a_run_to_its_end():
    run = await database_sync_to_async(lambda: run_start(spec=digits_run(rounds=2)))()
    sockets = [Socket(device) for device in (ADA, BO, CY)]
    async with dispatching():
        workers = [asyncio.create_task(socket.work()) for socket in sockets]
        for socket in sockets:
            await socket.connect()
        await eventually(lambda: Run.objects.get().state == "finished", seconds=60)
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
    run = await Run.objects.aget(pk=run.pk)
    assert run.ended_because == "epochs"
    assert run.params_sha256 != run.initial_params_sha256


async def test_a_starting_dispatcher_asks_the_fleet_to_announce_itself():
    layer = channel_layer()
    channel = await layer.new_channel()
    await layer.group_add(fleet.FLEET_GROUP, channel)
    async with dispatching():
        assert await layer.receive(channel) == fleet.ANNOUNCE


async def test_owners_changes_are_told_to_the_socket():
    socket = Socket(ADA)
    async with dispatching():
        await socket.connect()
        await start()
        await socket.next(ins.SendLease)
        await socket.layer.send(DISPATCHER, {"type": "wake"})
        await database_sync_to_async(DeviceNews.publish)("removed", device_id=str(ADA))
        closed = await socket.next(ins.CloseSession)
        assert closed.reason == "removed"


async def test_a_lease_that_a_full_channel_dropped_is_sent_again(settings, caplog):
    settings.CHANNEL_LAYERS = {
        "default": {"BACKEND": "channels.layers.InMemoryChannelLayer", "CONFIG": {"capacity": 1}}
    }
    clock = Clock()
    socket = Socket(ADA)
    await socket.layer.send(socket.channel, {"type": "something"})
    async with dispatching(clock):
        await socket.connect()
        await start()
        await eventually(lambda: "the socket's channel is full" in caplog.text)
        lease = await Lease.objects.aget()
        assert await socket.layer.receive(socket.channel) == {"type": "something"}
        clock.pass_time(6)
        assert (await socket.next(ins.SendLease)).lease_id == lease.id


async def test_a_channel_layer_that_fails_costs_messages_and_no_turn(monkeypatch, caplog):
    clock = Clock()
    socket = Socket(ADA)
    send = socket.layer.send
    failures = iter([ConnectionError("redis is away")])

    async def failing(channel: str, message: Any) -> None:
        if message.get("name") == "SendLease":
            for failure in failures:
                raise failure
        await send(channel, message)

    monkeypatch.setattr(socket.layer, "send", failing)
    async with dispatching(clock):
        await socket.connect()
        await start()
        await eventually(lambda: "redis is away" in caplog.text)
        lease = await Lease.objects.aget()
        clock.pass_time(6)
        assert (await socket.next(ins.SendLease)).lease_id == lease.id
    assert "failed" not in caplog.text


async def test_an_event_that_cannot_be_handled_is_dropped_and_the_others_get_through(monkeypatch, caplog):
    step = machine.step

    def fragile(state: Any, batch: Any, **rest: Any) -> Any:
        if any(isinstance(event, ev.DeviceReady) for event in batch):
            raise ZeroDivisionError
        return step(state, batch, **rest)

    monkeypatch.setattr(machine, "step", fragile)
    await start()
    socket = Socket(ADA)
    async with dispatching():
        await socket.send(ev.DeviceReady(ADA, "poison"))
        await socket.connect()
        await socket.next(ins.SendLease)
    assert "dropped, as it cannot be handled" in caplog.text


async def test_an_unreadable_message_is_dropped(caplog):
    await start()
    socket = Socket(ADA)
    async with dispatching():
        await socket.layer.send(DISPATCHER, {"type": "device.event", "name": "Nonsense", "body": {}})
        await socket.connect()
        await socket.next(ins.SendLease)
    assert "an unreadable message was dropped" in caplog.text


async def test_a_database_that_fails_for_a_moment_costs_no_event(monkeypatch):
    await start()
    failures = iter([OperationalError("gone"), OperationalError("gone")])
    turn = Engine.turn

    def failing(self: Engine, mail: Any) -> Any:
        if any(isinstance(item.event, ev.DeviceConnected) for item in mail):
            for failure in failures:
                raise failure
        return turn(self, mail)

    monkeypatch.setattr(Engine, "turn", failing)
    socket = Socket(ADA)
    async with dispatching():
        await socket.connect()
        await socket.next(ins.SendLease)
    assert next(failures, None) is None


async def test_a_task_that_fails_is_asked_for_again(monkeypatch):
    clock = Clock()
    asked: list[str] = []

    def broken(lease_id: str) -> None:
        asked.append(lease_id)
        raise MemoryError

    monkeypatch.setattr("scheduler.dispatcher.check_result.delay", broken)
    await start()
    socket = Socket(ADA)
    async with dispatching(clock):
        await socket.connect()
        lease = await socket.next(ins.SendLease)
        await socket.send(ev.ResultReported(ADA, lease.lease_id, "0" * 64, 10, 1, 2, (0.5, 0.5)))
        await eventually(lambda: len(asked) == 1)
        clock.pass_time(31)
        await eventually(lambda: len(asked) == 2)


async def test_a_cancelled_run_is_seen_without_a_wake_up(monkeypatch):
    monkeypatch.setattr("scheduler.services.wake_on_commit", lambda _: None)
    run = await start()
    async with dispatching():
        await database_sync_to_async(run_cancel)(run_id=run.id)
        await eventually(lambda: Run.objects.get().state == "cancelled")
    assert not await Inbox.objects.aexists()


async def test_a_dispatcher_that_stops_lets_the_next_one_in_at_once():
    async with dispatching():
        await eventually(lambda: DispatcherLock.objects.filter(holder__gt="").exists())
    assert (await DispatcherLock.objects.aget()).holder == ""
