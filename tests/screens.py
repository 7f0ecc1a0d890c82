"""Pictures of every page, to look at: `python -m tests.screens` seeds a site and saves PNGs in var/screens/.

Each page is taken as a phone and as a desktop sees it, in light and dark. Whatever the browser complains about (a
blocked script, a failed request) and any page that is wider than its window is printed, and fails the run.
Needs Chromium.
"""

import os
import shutil
import sys
import tempfile
import threading
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.chromium import Chromium, browser
from tests.phone.shell.pictures import pictures

OUT = Path("var/screens")
SIZES = {"phone": (390, 844), "desktop": (1440, 900)}
WRONG_JOB = """
    const form = document.querySelector("main form");
    form.sgd_learning_rate.value = -1;
    form.mlp_hidden.value = "sixty-four";
    form.budget.value = "lots";
    form.noValidate = true;
    form.querySelector("p > button").click();
"""


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="nightshift-screens-") as folder:
        os.environ |= {"DJANGO_SETTINGS_MODULE": "marketplace.settings", "NIGHTSHIFT_VAR_DIR": folder}
        os.environ |= {
            "NIGHTSHIFT_LOG_LEVEL": "ERROR",
            "NIGHTSHIFT_STRIPE_SECRET_KEY": "sk_test_for_pictures",
        }
        import django

        django.setup()
        shots = seed()
        shutil.rmtree(OUT, ignore_errors=True)
        OUT.mkdir(parents=True)
        with site() as address, browser(Path(folder) / "profile", flags=["--disable-gpu"]) as chromium:
            complaints = [
                f"{shot.name} ({look}): {complaint}"
                for shot in shots
                for look in ("phone", "desktop", "dark")
                for complaint in take(chromium, address, shot, look)
            ]
        complaints += pictures(OUT)
    print("\n".join(complaints) or f"{len(shots)} pages in {OUT}, no complaints")
    return 1 if complaints else 0


@dataclass(frozen=True, slots=True)
class Shot:
    """A page as the person of `session_key` (none: a stranger) sees it, after doing `act` (JavaScript) on it."""

    name: str
    path: str
    session_key: str | None = None
    act: str | None = None
    status: int = 200


def seed() -> list[Shot]:
    """A buyer who also owns devices, a newcomer, and every page that either sees."""
    from django.core.management import call_command

    from accounts.models import Device, User
    from billing.services import grant_post
    from tests.marketplace.pages import scenes

    call_command("migrate", verbosity=0)
    operator = User.objects.create_user("olive@example.org", is_staff=True)
    ada = User.objects.create_user("ada@example.org", time_zone="Europe/Berlin")
    grant_post(user=ada, amount_microusd=25_000_000, operator=operator, idempotency_key="g", memo="Welcome")
    working = scenes.fleet(ada)
    dataset = scenes.digits(ada)
    quoted, running, finished = (
        scenes.digits_job(ada, dataset, name=name)
        for name in ("Digits, once more", "Digits, wider", "First digits")
    )
    finished = scenes.finished(finished, rounds=15, owner=ada)
    scenes.round_under_way(scenes.trained(running, rounds=9, owner=ada), working)
    scenes.worked(ada, ["Pixel on the shelf", "Living room laptop", "Kitchen tablet"])
    scenes.spread(ada, hours=[13.5, 12.6, 11.2, 9.8, 8.7, 7.5, 4.4, 3.1, 2.2, 0.6])
    scenes.nights(ada)
    scenes.benched(Device.objects.get(owner=ada, name__startswith="Old phone"))
    tablet = Device.objects.get(owner=ada, name="Kitchen tablet")
    bea = User.objects.create_user("bea@example.org", time_zone="Europe/Berlin")
    grant_post(user=bea, amount_microusd=25_000_000, operator=operator, idempotency_key="g2")
    data = scenes.digits(bea)
    refused = scenes.digits_job(bea, data, name="Digits, later")
    paused = scenes.paused(scenes.digits_job(bea, data, name="Digits, on hold"))
    disputed = log_in(bea)
    her, new = log_in(ada), log_in(User.objects.create_user("new@example.org"))
    return [
        Shot("home", "/"),
        Shot("api-docs", "/api/docs/"),
        Shot("not-found", f"/jobs/{quoted.pk}/", new, status=404),
        Shot("new-jobs", "/jobs/", new),
        Shot("new-datasets", "/datasets/", new),
        Shot("new-devices", "/devices/", new),
        Shot(
            "new-pairing",
            "/devices/",
            new,
            "document.querySelector('form[action$=\"/pair/\"] button').click()",
        ),
        Shot("jobs", "/jobs/", her),
        Shot("job-new", f"/jobs/new/?dataset={dataset.pk}", her),
        Shot("job-new-wrong", f"/jobs/new/?dataset={dataset.pk}", her, WRONG_JOB, 400),
        Shot("job-quoted", f"/jobs/{quoted.pk}/", her),
        Shot("job-running", f"/jobs/{running.pk}/", her),
        Shot("job-finished", f"/jobs/{finished.pk}/", her),
        Shot("datasets", "/datasets/", her),
        Shot("dataset", f"/datasets/{dataset.pk}/", her),
        Shot("devices", "/devices/", her),
        Shot("device", f"/devices/{working.pk}/", her),
        Shot("device-unpaid", f"/devices/{tablet.pk}/", her),
        Shot("earnings", "/earnings/", her),
        Shot("new-earnings", "/earnings/", new),
        Shot("wallet", "/wallet/", her),
        Shot("job-paused", f"/jobs/{paused.pk}/", disputed),
        Shot("job-not-to-confirm", f"/jobs/{refused.pk}/", disputed),
        Shot("invoices", "/invoices/", her),
        Shot("invoice", f"/invoices/{finished.invoice.pk}/", her),
        Shot("settings", "/settings/", her),
        Shot("payments", "/payments/", her),
        Shot("automatic", "/payments/automatic/", her),
        Shot("payouts", "/payouts/", her),
    ]


def log_in(user: Any) -> str:
    from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
    from django.contrib.sessions.backends.db import SessionStore

    session = SessionStore()
    session[SESSION_KEY] = str(user.pk)
    session[BACKEND_SESSION_KEY] = "django.contrib.auth.backends.ModelBackend"
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    session.save()
    return str(session.session_key)


@contextmanager
def site() -> Iterator[str]:
    """The site on a free port, in threads of this process."""
    from django.core.servers.basehttp import ThreadedWSGIServer, WSGIRequestHandler
    from django.core.wsgi import get_wsgi_application

    class Quiet(WSGIRequestHandler):
        def log_message(self, *_args: object) -> None:
            pass

    server = ThreadedWSGIServer(("127.0.0.1", 0), Quiet)
    server.set_app(get_wsgi_application())
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()


def take(chromium: Chromium, address: str, shot: Shot, look: str) -> list[str]:
    """Save a picture of the whole page; returns what is wrong with it."""
    width, height = SIZES.get(look, SIZES["desktop"])
    scheme = {"name": "prefers-color-scheme", "value": "dark" if look == "dark" else "light"}
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": look == "phone"}
    chromium.call("Emulation.setDeviceMetricsOverride", **metrics)
    chromium.call("Emulation.setEmulatedMedia", features=[scheme])
    chromium.call("Network.clearBrowserCookies")
    if shot.session_key:
        chromium.call("Network.setCookie", name="sessionid", value=shot.session_key, url=address)
    chromium.events.clear()
    chromium.navigate(f"{address}{shot.path}")
    if shot.act:
        chromium.load("Runtime.evaluate", expression=shot.act)
    size = chromium.call("Page.getLayoutMetrics")["cssContentSize"]
    clip = {"x": 0, "y": 0, "width": width, "height": max(height, size["height"]), "scale": 1}
    picture = chromium.call("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)
    (OUT / f"{shot.name}-{look}.png").write_bytes(b64decode(picture["data"]))
    too_wide = [f"{size['width']:.0f} px wide in a window of {width} px"] if size["width"] > width else []
    return too_wide + _complaints(chromium.events, shot.status)


def _complaints(events: list[dict[str, Any]], status: int) -> list[str]:
    """What failed during the events; the page itself answers with `status`."""
    found = []
    for message in events:
        params = message.get("params", {})
        match message.get("method"):
            case "Log.entryAdded" if params["entry"]["source"] != "network":
                found.append(params["entry"]["text"])
            case "Runtime.exceptionThrown":
                found.append(params["exceptionDetails"]["text"])
            case "Network.responseReceived" if params["response"]["status"] not in (200, status):
                found.append(f"{params['response']['status']} {params['response']['url']}")
    return found


if __name__ == "__main__":
    sys.exit(main())
