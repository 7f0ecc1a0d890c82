"""The cast of the fleet manager's tests: Ada owns a laptop, and a client plays it over the real ASGI application."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import time
from typing import Any

import pytest
from channels.layers import BaseChannelLayer, channel_layers, get_channel_layer
from channels.routing import URLRouter
from channels.testing import WebsocketCommunicator
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.urls import path

from accounts.models import Device, IdleWindow, User
from marketplace.asgi import application
from scheduler import fleet
from scheduler.domain import events as ev
from scheduler.domain import instructions as ins
from worker_protocol.consumer import DeviceConsumer, steady_ms
from worker_protocol.wire import messages as msg
from worker_protocol.wire.codec import decode_server
from worker_protocol.wire.session import DeviceSession, SessionState

KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
PATH = "/ws/device/"
REPLY_TIMEOUT_S = 5
QUIET_S = 0.05


@pytest.fixture(autouse=True)
def _a_site_of_its_own(settings):
    """Only a device's addresses, and channels that no other test has used."""
    settings.ROOT_URLCONF = "tests.worker_protocol.urls"
    channel_layers.backends.clear()
    yield
    channel_layers.backends.clear()


@pytest.fixture
def ada(transactional_db) -> User:
    user = User.objects.create_user("ada@example.org", "correct horse battery")
    for weekday in range(7):
        IdleWindow.objects.create(owner=user, weekday=weekday, starts=time(0), ends=time(0))
    return user


@pytest.fixture
def laptop(ada) -> Device:
    return Device.objects.create(owner=ada, name="Laptop", public_key=KEY.public_key().public_bytes_raw())


def channel_layer() -> BaseChannelLayer:
    layer = get_channel_layer()
    assert layer is not None
    return layer


def site_with(**arguments: Any) -> URLRouter:
    """The application with a fleet manager of another clock or tick."""
    consumer: Any = DeviceConsumer.as_asgi(**arguments)
    routes: list[Any] = [path(PATH.lstrip("/"), consumer)]
    return URLRouter(routes)


class DeviceClient:
    """A device's end of a socket to the application, driven by a test."""

    def __init__(self, app: Any, device_id: str, *, key: Ed25519PrivateKey = KEY, **hello: Any) -> None:
        self.socket = WebsocketCommunicator(app, PATH, subprotocols=[msg.PROTOCOL])
        greeting = msg.Hello(device_id=device_id, agent="test/1", **hello)
        self.session = DeviceSession(hello=greeting, key=key, now_ms=steady_ms())

    async def connect(self) -> None:
        connected, subprotocol = await self.socket.connect()
        assert (connected, subprotocol) == (True, msg.PROTOCOL)

    async def log_in(self) -> msg.Welcome:
        await self.connect()
        await self.flush()
        while self.session.state is not SessionState.READY:
            welcome = await self.reply()
        assert isinstance(welcome, msg.Welcome)
        terms = await self.reply()
        assert isinstance(terms, msg.Terms)
        self.terms = terms
        return welcome

    async def say(self, message: msg.Message) -> None:
        self.session.send(message)
        await self.flush()

    async def reply(self) -> msg.ServerMessage | None:
        """The next message of the server; None for one that the session has answered by itself."""
        frame = await self.socket.receive_from(timeout=REPLY_TIMEOUT_S)
        messages = self.session.receive(frame, steady_ms())
        await self.flush()
        return messages[0] if messages else None

    async def error(self) -> msg.Error:
        error = decode_server(await self.socket.receive_from(timeout=REPLY_TIMEOUT_S))
        assert isinstance(error, msg.Error), error
        return error

    async def closed_with(self) -> int:
        output = await self.socket.receive_output(timeout=REPLY_TIMEOUT_S)
        assert output["type"] == "websocket.close", output
        return int(output["code"])

    async def hears_nothing(self) -> bool:
        return bool(await self.socket.receive_nothing(timeout=QUIET_S))

    async def flush(self) -> None:
        for frame in self.session.frames_to_send():
            await self.socket.send_to(text_data=frame)


@dataclass(frozen=True)
class Dispatcher:
    """The test in the place of the dispatcher."""

    async def hears(self) -> ev.DeviceEvent:
        message = await channel_layer().receive(fleet.DISPATCHER)
        return fleet.event_from_message(message)

    async def tells(self, instruction: ins.DeviceInstruction) -> None:
        await channel_layer().send(instruction.session_id, fleet.instruction_to_message(instruction))


@pytest.fixture
def dispatcher() -> Dispatcher:
    return Dispatcher()


Connect = Callable[..., DeviceClient]


@pytest.fixture
async def call_in(laptop) -> AsyncIterator[Connect]:
    """Makes clients that play the laptop; their sockets end with the test."""
    clients: list[DeviceClient] = []

    def make(app: Any = application, *, device_id: Any = None, **rest: Any) -> DeviceClient:
        client = DeviceClient(app, str(device_id or laptop.id), **rest)
        clients.append(client)
        return client

    yield make
    for client in clients:
        await _hang_up(client.socket)


async def _hang_up(socket: WebsocketCommunicator) -> None:
    if socket.future is not None and not socket.future.done():
        await socket.disconnect(timeout=REPLY_TIMEOUT_S)


@pytest.fixture
async def online(call_in, dispatcher) -> tuple[DeviceClient, ev.DeviceConnected]:
    """The laptop, logged in, and how the dispatcher heard of it."""
    client = call_in()
    await client.log_in()
    connected = await dispatcher.hears()
    assert isinstance(connected, ev.DeviceConnected)
    return client, connected
