"""WebSocket addresses: one, where devices call in."""

from typing import Any

from django.urls import path

from worker_protocol.consumer import DeviceConsumer

# Any: Channels routes ASGI applications by Django's `path`, whose types want views.
device_application: Any = DeviceConsumer.as_asgi()
websocket_urlpatterns: list[Any] = [path("ws/device/", device_application)]
