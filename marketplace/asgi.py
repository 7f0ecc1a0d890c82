"""The ASGI application: HTTP to Django, WebSockets of devices to the fleet manager."""

import os

from channels.routing import ProtocolTypeRouter, URLRouter
from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "marketplace.settings")
django_application = get_asgi_application()

from worker_protocol.routing import websocket_urlpatterns  # noqa: E402 - needs Django's app registry

application = ProtocolTypeRouter({"http": django_application, "websocket": URLRouter(websocket_urlpatterns)})
