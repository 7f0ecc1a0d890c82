"""The phone app's addresses. Its page is one document for everyone; who is logged in is asked for apart."""

from functools import cache
from typing import Any

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.middleware.csrf import get_token
from django.templatetags.static import static
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.gzip import gzip_page
from django.views.decorators.http import require_safe

from accounts.domain.device_classes import DEVICE_CLASSES
from accounts.domain.nights import usual_week
from accounts.domain.windows import NIGHTLY
from accounts.models import User
from accounts.selectors import common_windows_of
from worker_protocol.app_shell import app_shell, service_worker_text
from worker_protocol.icons import ICONS, Icon
from worker_protocol.self_test import SelfTest, self_test_open

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


@gzip_page  # numbers and kernels, the same for everyone
@require_safe
def self_test_manifest(request: HttpRequest) -> HttpResponse:
    """What a browser must compute right before it gets work; made on the first question after an update."""
    response = HttpResponse(_self_test().manifest, content_type="application/json")
    response["Cache-Control"] = "no-cache"
    return response


@gzip_page
@require_safe
def self_test_file(request: HttpRequest, sha256: str) -> HttpResponse:
    data = _self_test().files.get(sha256)
    if data is None:
        raise Http404
    response = HttpResponse(data, content_type="application/octet-stream")
    response["Cache-Control"] = "public, max-age=31536000, immutable"  # the name is of the content
    return response


@never_cache
@require_safe
def facts(request: HttpRequest) -> JsonResponse:
    """Who is logged in, if anyone, and how long their nights are: by their windows, or by the usual ones."""
    person = request.user if isinstance(request.user, User) else None
    own_windows = common_windows_of(person) if person else []
    week = usual_week(own_windows or NIGHTLY)
    body = {
        "account": {"email": person.email, "csrf_token": get_token(request)} if person else None,
        "own_windows": bool(own_windows),
        "hours_a_night": week.hours_a_night,
        "nights_a_week": week.nights,
        "class_labels": {key: one.label for key, one in DEVICE_CLASSES.items()},
    }
    return JsonResponse(body)


@cache
def _self_test() -> SelfTest:
    """Kept on disk from one start of the site to the next."""
    return self_test_open(settings.VAR_DIR / "self-test")


def _icon(icon: Icon) -> dict[str, Any]:
    return {
        "src": static(f"worker_protocol/app/icons/{icon.name}"),
        "sizes": f"{icon.pixels}x{icon.pixels}",
        "type": "image/png",
        "purpose": "any" if icon.rounded else "maskable",
    }
