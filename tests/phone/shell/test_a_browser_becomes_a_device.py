"""Enrolment from a code to a paired device, through the whole site and a real browser; only the worker is played."""

import sqlite3

import httpx
import pytest

from tests.phone.shell.conftest import Site
from tests.phone.shell.phone import Phone
from tests.phone.shell.site import EMAIL, PASSWORD

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def enrol_up_to_the_offer(phone: Phone, code: str) -> None:
    phone.open(f"/device/#code={code}")
    phone.until_screen("welcome")
    phone.tap("#welcome-go")
    phone.tap("#probe-go")
    phone.until_screen("offer")


def devices(site: Site) -> list[tuple[str, str, str, float]]:
    with sqlite3.connect(site.database) as database:
        rows = database.execute(
            "select name, kind, device_class, speed_factor from accounts_device order by paired_at"
        )
        return rows.fetchall()


def test_a_scanned_code_leads_to_a_paired_device(phone: Phone, site: Site):
    code = site.code()
    enrol_up_to_the_offer(phone, code)
    assert phone.text("#offer-range") == "up to $3.89"
    assert "10:00 PM to 7:00 AM" in phone.text("#offer-basis")  # as this browser writes times
    assert "fee of 20 %" in phone.text("#offer-basis")
    assert "$0.43 for an hour of work" in phone.text("#offer-basis")
    assert "151 GFLOP/s" in phone.text("#offer-basis")
    phone.type("#name", "Ada's phone")
    phone.tap("#offer-go")
    phone.until_screen("home")
    assert phone.text("#home-title") == "Ada's phone"
    assert devices(site)[-1] == ("Ada's phone", "laptop", "phone-entry", 1.4)
    phone.open()
    phone.until_screen("home")
    assert phone.text("#home-title") == "Ada's phone"


def test_the_code_does_not_stay_in_the_address(phone: Phone, site: Site):
    phone.open("/device/#code=ABCD-EFGH")
    phone.until_text("ABCD-EFGH")
    assert phone.js("location.href") == f"{site.address}/device/"


def test_the_key_cannot_be_taken_out_of_the_browser(phone: Phone, site: Site):
    enrol_up_to_the_offer(phone, site.code())
    phone.tap("#offer-go")
    phone.until_screen("home")
    exported = """import("/static/worker_protocol/worker/keys.js").then(async ({ identityLoad }) => {
        const { keys } = await identityLoad();
        return crypto.subtle.exportKey("pkcs8", keys.privateKey).then(() => "taken", (error) => error.name);
    })"""
    assert phone.js(exported) == "InvalidAccessError"


def test_a_code_is_typed(phone: Phone, site: Site):
    phone.open()
    phone.tap("#welcome-go")
    phone.tap("#probe-go")
    phone.until_screen("join")
    phone.type("#code", site.code().lower().replace("-", " "))
    phone.tap("#code-form button:not([type=button])")
    phone.until_screen("offer")
    phone.tap("#offer-go")
    phone.until_screen("home")


def test_an_owner_who_is_logged_in_needs_no_code(phone: Phone, site: Site):
    phone.open("/log-in/?next=/device/")
    phone.type("[name=username]", EMAIL)
    phone.type("[name=password]", PASSWORD)
    with phone.page.expect_navigation():
        phone.tap("main form button:not([type=button])")
    phone.open()
    phone.tap("#welcome-go")
    phone.tap("#probe-go")
    phone.until_text(EMAIL)
    phone.tap("#account-code")
    phone.until_screen("offer")
    phone.tap("#offer-go")
    phone.until_screen("home")


@pytest.mark.parametrize(
    ("trouble", "words"),
    [
        ("wrong", "This pairing code is not right."),
        ("used", "This pairing code has been used"),
        ("expired", "This pairing code has expired"),
    ],
)
def test_a_refused_code_is_explained_and_another_one_goes_on_where_it_was(
    phone: Phone, site: Site, trouble: str, words: str
):
    code = site.code()
    if trouble == "wrong":
        code = "ZZZZ-2222"
    elif trouble == "used":
        pair_something(site, code)
    enrol_up_to_the_offer(phone, code)
    if trouble == "expired":
        site.expire(code)
    phone.tap("#offer-go")
    phone.until_screen("join")
    phone.until_text(words, "#code-error")
    phone.type("#code", site.code())
    phone.tap("#code-form button:not([type=button])")
    phone.until_screen("offer")
    assert len(phone.told("benchmark")) == 1
    phone.tap("#offer-go")
    phone.until_screen("home")


def pair_something(site: Site, code: str) -> None:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    body = {
        "code": code,
        "public_key": Ed25519PrivateKey.generate().public_key().public_bytes_raw().hex(),
        "name": "Other",
        "kind": "phone",
        "device_class": "phone-entry",
    }
    assert httpx.post(f"{site.address}/api/devices/pair/", json=body).status_code == 201
