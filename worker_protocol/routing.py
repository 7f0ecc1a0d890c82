"""WebSocket addresses: one, where devices call in."""

from django.urls import path

from worker_protocol.consumer import DeviceConsumer

websocket_urlpatterns = [path("ws/device/", DeviceConsumer.as_asgi())]
