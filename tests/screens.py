"""Pictures of every page, to look at: `python -m tests.screens` seeds a site and saves PNGs in var/screens/.

Each page is taken as a phone and as a desktop sees it, in light and dark. Whatever the browser complains about (a
blocked script, a failed request) and any page that is wider than its window is printed, and fails the run.
`python -m tests.screens operators` takes only those whose names begin so. Needs Chromium.
"""

import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from playwright.sync_api import Browser, Page, Response

from tests.chromium import chromium, complaints
from tests.phone.shell.pictures import pictures

OUT = Path("var/screens")
OPERATORS_LISTS = (
    "account", "adjustment", "dispute", "fee", "hold", "operatoraction", "payout", "payoutaccount", "rate", "refund",
    "standing", "stripecall", "stripeevent", "topup", "transfer", "unmatched",
)  # fmt: skip
LOOKS: Final[dict[str, dict[str, Any]]] = {
    "phone": {"viewport": {"width": 390, "height": 844}, "is_mobile": True},
    "desktop": {"viewport": {"width": 1440, "height": 900}},
    "dark": {"viewport": {"width": 1440, "height": 900}, "color_scheme": "dark"},
}


def ask_for_a_code(page: Page) -> None:
    page.locator('form[action$="/pair/"] button').click()


def fill_in_wrongly(page: Page) -> None:
    """A form that only the server refuses."""
    page.locator("main form").evaluate("""(form) => {
        form.sgd_learning_rate.value = -1;
        form.mlp_hidden.value = "sixty-four";
        form.budget.value = "lots";
        form.noValidate = true;
        form.querySelector("p > button").click();
    }""")


def adjust_wrongly(page: Page) -> None:
    page.fill("#id_from_key", "bank")
    page.fill("#id_to_key", "wallet:nobody@example.org")
    page.fill("#id_usd", "1.0000001")
    page.locator("#adjustment_form").evaluate("form => { form.noValidate = true; }")
    page.locator("input[name=_save]").click()


def freeze_without_a_reason(page: Page) -> None:
    page.locator(".action-select").first.check()
    page.select_option("select[name=action]", "freeze")
    page.locator("button[name=index]").click()


def open_the_first(page: Page) -> None:
    page.locator("#result_list tbody th a").first.click()


def main(only: str = "") -> int:
    with tempfile.TemporaryDirectory(prefix="nightshift-screens-") as folder:
        os.environ |= {"DJANGO_SETTINGS_MODULE": "marketplace.settings", "NIGHTSHIFT_VAR_DIR": folder}
        os.environ |= {
            "NIGHTSHIFT_LOG_LEVEL": "ERROR",
            "NIGHTSHIFT_STRIPE_SECRET_KEY": "sk_test_of_nobody",
            "NIGHTSHIFT_STRIPE_WEBHOOK_SECRETS": "whsec_of_nobody",
            "NIGHTSHIFT_EMAIL": "file",
            "NIGHTSHIFT_ADJUSTMENT_LIMIT_MICROUSD": "50000000",
        }
        import django

        django.setup()
        shots = [shot for shot in seed() if shot.name.startswith(only)]
        shutil.rmtree(OUT, ignore_errors=True)
        OUT.mkdir(parents=True)
        with site() as address, chromium() as browser:
            wrong = [
                f"{shot.name} ({look}): {complaint}"
                for shot in shots
                for look in LOOKS
                for complaint in take(browser, address, shot, look)
            ]
        if not only:
            wrong += pictures(OUT)
    print("\n".join(wrong) or f"{len(shots)} pages in {OUT}, no complaints")
    return 1 if wrong else 0


@dataclass(frozen=True, slots=True)
class Shot:
    """A page as the person of `session_key` (none: a stranger) sees it, after an `act` that leads to another."""

    name: str
    path: str
    session_key: str | None = None
    act: Callable[[Page], None] | None = None
    status: int = 200


def seed() -> list[Shot]:
    """People of every kind, and every page that each of them sees."""
    from django.core.management import call_command

    from accounts.models import User

    call_command("migrate", verbosity=0)
    operator = User.objects.create_user("olive@example.org", is_staff=True)
    ada, bea = (
        User.objects.create_user(f"{name}@example.org", time_zone="Europe/Berlin") for name in ("ada", "bea")
    )
    welcome(operator, ada, bea)
    return [
        Shot("home", "/"),
        Shot("api-docs", "/api/docs/"),
        *newcomers_pages(),
        *pages_of_a_buyer_who_owns_devices(ada),
        *pages_of_a_disputed_buyer(bea),
        *operators_pages(),
    ]


def welcome(operator: Any, *people: Any) -> None:
    from billing.services import grant_post

    for person in people:
        grant_post(
            user=person,
            amount_microusd=25_000_000,
            operator=operator,
            idempotency_key=f"welcome:{person.pk}",
            reason="new here.",
            memo="Welcome",
        )


def newcomers_pages() -> list[Shot]:
    from accounts.models import User

    new = log_in(User.objects.create_user("new@example.org"))
    return [
        Shot("not-found", "/jobs/00000000-0000-0000-0000-000000000000/", new, status=404),
        Shot("new-jobs", "/jobs/", new),
        Shot("new-datasets", "/datasets/", new),
        Shot("new-devices", "/devices/", new),
        Shot("new-pairing", "/devices/", new, ask_for_a_code),
        Shot("new-earnings", "/earnings/", new),
    ]


def pages_of_a_buyer_who_owns_devices(ada: Any) -> list[Shot]:
    from accounts.models import Device
    from tests.marketplace.pages import scenes

    working = scenes.fleet(ada)
    dataset = scenes.digits(ada)
    quoted, running, finished = (
        scenes.digits_job(ada, dataset, name=name)
        for name in ("Digits, once more", "Digits, wider", "First digits")
    )
    workers = ["Pixel on the shelf", "Living room laptop", "Kitchen tablet"]
    finished = scenes.finished(finished, rounds=15, owner=ada, devices=workers)
    scenes.round_under_way(scenes.trained(running, rounds=9, owner=ada, devices=workers), working)
    scenes.spread(ada, hours=[13.5, 12.6, 11.2, 9.8, 8.7, 7.5, 4.4, 3.1, 2.2, 0.6])
    scenes.nights(ada)
    scenes.benched(Device.objects.get(owner=ada, name__startswith="Old phone"))
    tablet = Device.objects.get(owner=ada, name="Kitchen tablet")
    her = log_in(ada)
    return [
        Shot("jobs", "/jobs/", her),
        Shot("job-new", f"/jobs/new/?dataset={dataset.pk}", her),
        Shot("job-new-wrong", f"/jobs/new/?dataset={dataset.pk}", her, fill_in_wrongly, 400),
        Shot("job-quoted", f"/jobs/{quoted.pk}/", her),
        Shot("job-running", f"/jobs/{running.pk}/", her),
        Shot("job-finished", f"/jobs/{finished.pk}/", her),
        Shot("datasets", "/datasets/", her),
        Shot("dataset", f"/datasets/{dataset.pk}/", her),
        Shot("devices", "/devices/", her),
        Shot("device", f"/devices/{working.pk}/", her),
        Shot("device-unpaid", f"/devices/{tablet.pk}/", her),
        Shot("earnings", "/earnings/", her),
        Shot("wallet", "/wallet/", her),
        Shot("invoices", "/invoices/", her),
        Shot("invoice", f"/invoices/{finished.invoice.pk}/", her),
        Shot("settings", "/settings/", her),
        Shot("payments", "/payments/", her),
        Shot("automatic", "/payments/automatic/", her),
        Shot("payouts", "/payouts/", her),
    ]


def pages_of_a_disputed_buyer(bea: Any) -> list[Shot]:
    from tests.marketplace.pages import scenes

    data = scenes.digits(bea)
    refused = scenes.digits_job(bea, data, name="Digits, later")
    paused = scenes.paused(scenes.digits_job(bea, data, name="Digits, on hold"))
    her = log_in(bea)
    return [
        Shot("job-paused", f"/jobs/{paused.pk}/", her),
        Shot("job-not-to-confirm", f"/jobs/{refused.pk}/", her),
    ]


def operators_pages() -> list[Shot]:
    olive = operators_night()
    return [
        *(Shot(f"operators-{name}", f"/admin/billing/{name}/", olive) for name in OPERATORS_LISTS),
        Shot("operators", "/admin/", olive),
        Shot("operators-adjust", "/admin/billing/adjustment/add/", olive),
        Shot("operators-adjust-wrong", "/admin/billing/adjustment/add/", olive, adjust_wrongly),
        Shot(
            "operators-payout-without-reason", "/admin/billing/payout/", olive, freeze_without_a_reason, 302
        ),
        Shot("operators-payout-row", "/admin/billing/payout/", olive, open_the_first),
        Shot("operators-transfer-row", "/admin/billing/transfer/", olive, open_the_first),
        Shot("operators-line-row", "/admin/billing/operatoraction/", olive, open_the_first),
    ]


def operators_night() -> str:
    """Money of all kinds, made by the services on a Stripe that is none; the session of the operator who looks."""
    from django.conf import settings
    from django.test import Client

    from tests.billing.operators_night import a_night_of_money
    from tests.fake_stripe import FakeStripe

    with FakeStripe() as stripe:
        settings.STRIPE_API_BASE = stripe.address
        return log_in(a_night_of_money(stripe, Client(SERVER_NAME="127.0.0.1")))


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


def take(browser: Browser, address: str, shot: Shot, look: str) -> list[str]:
    """Save a picture of the whole page; returns what is wrong with it."""
    with browser.new_context(**LOOKS[look]) as context:
        if shot.session_key:
            context.add_cookies([{"name": "sessionid", "value": shot.session_key, "url": address}])
        wrong = complaints(context)

        def hear(response: Response) -> None:
            if response.status not in (200, shot.status):  # with which the page itself answers
                wrong.append(f"{response.status} {response.url}")

        page = context.new_page()
        page.on("response", hear)
        page.goto(f"{address}{shot.path}")
        if shot.act:
            with page.expect_navigation():
                shot.act(page)
        page.screenshot(path=OUT / f"{shot.name}-{look}.png", full_page=True)
        width = page.evaluate("document.documentElement.scrollWidth")
        window = LOOKS[look]["viewport"]["width"]
        return wrong + ([f"{width} px wide in a window of {window} px"] if width > window else [])


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
