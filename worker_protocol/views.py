"""The phone app's addresses. Its page is one document for everyone; who is logged in is asked for apart."""

import dataclasses
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.middleware.csrf import get_token
from django.templatetags.static import static
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from accounts.domain.windows import NIGHTLY
from accounts.models import User
from accounts.selectors import common_windows_of
from billing.selectors import tariff_at
from common.clock import utc_now
from worker_protocol.app_shell import app_shell, service_worker_text
from worker_protocol.icons import ICONS, Icon
from worker_protocol.outlook import night_outlook

JAVASCRIPT = "text/javascript; charset=utf-8"
# As app.css's night: what a phone shows while the app opens.
GROUND = "#11131c"


@require_safe
def app(request: HttpRequest) -> HttpResponse:
    """The same bytes for everyone, so that a phone may keep them; asked for anew each time it is on line."""
    response = HttpResponse(app_shell().page)
    response["Cache-Control"] = "no-cache"
    return response


@require_safe
def manifest(request: HttpRequest) -> HttpResponse:
    """What a phone needs to put the app on its home screen. All of the site is in: log-in is beyond `/device/`."""
    body = {
        "id": reverse("device-app"),
        "name": "Nightshift",
        "short_name": "Nightshift",
        "description": "This device works at night and earns for you.",
        "start_url": reverse("device-app"),
        "scope": "/",
        "display": "standalone",
        "background_color": GROUND,
        "theme_color": GROUND,
        "icons": [_icon(icon) for icon in ICONS if icon.name != "apple-touch-icon.png"],
    }
    response = JsonResponse(body, content_type="application/manifest+json")
    response["Cache-Control"] = "no-cache"
    return response


@require_safe
def service_worker(request: HttpRequest) -> HttpResponse:
    response = HttpResponse(service_worker_text(), content_type=JAVASCRIPT)
    response["Cache-Control"] = "no-cache"
    return response


@require_safe
def worker(request: HttpRequest) -> HttpResponse:
    """The Web Worker's entry. It lives under `/device/` so that the service worker serves it and all it imports."""
    address = static("worker_protocol/worker/main.js")
    response = HttpResponse(f'import "{address}";\n', content_type=JAVASCRIPT)
    response["Cache-Control"] = "no-cache"
    return response


@never_cache
@require_safe
def facts(request: HttpRequest) -> JsonResponse:
    """Who is logged in, if anyone, and what a night earns at today's rates in their windows or the usual ones."""
    person = request.user if isinstance(request.user, User) else None
    own_windows = common_windows_of(person) if person else []
    outlook = night_outlook(windows=own_windows or NIGHTLY, tariff=tariff_at(utc_now()))
    account = {"email": person.email, "csrf_token": get_token(request)} if person else None
    body = {"account": account, "own_windows": bool(own_windows), "outlook": dataclasses.asdict(outlook)}
    return JsonResponse(body)


def _icon(icon: Icon) -> dict[str, Any]:
    return {
        "src": static(f"worker_protocol/app/icons/{icon.name}"),
        "sizes": f"{icon.pixels}x{icon.pixels}",
        "type": "image/png",
        "purpose": "any" if icon.rounded else "maskable",
    }
