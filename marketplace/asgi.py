"""The ASGI application: HTTP to Django, WebSockets of devices to the fleet manager."""

import os
import sys

import django
from channels.routing import ProtocolTypeRouter, URLRouter

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "marketplace.settings")
django.setup(set_prefix=False)
# The event loop gets its turn within a millisecond, not five, of a view that computes: each answer needs several.
sys.setswitchinterval(0.001)

from marketplace.http_threads import ThreadsHandler  # noqa: E402 - needs Django's settings
from worker_protocol.routing import websocket_urlpatterns  # noqa: E402 - needs Django's app registry

application = ProtocolTypeRouter({"http": ThreadsHandler(), "websocket": URLRouter(websocket_urlpatterns)})
