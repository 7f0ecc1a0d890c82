"""The owner's page and a device's page, with a real database behind them."""

import re
from collections.abc import Mapping
from datetime import time, timedelta

import pytest
import segno

from accounts.domain.windows import Window
from accounts.models import Device, PairingCode, User
from accounts.selectors import common_windows_of, windows_of_device
from accounts.services import device_pair, idle_windows_replace
from billing.services import grant_post
from common.clock import utc_now
from scheduler.models import Lease
from tests.marketplace import cast
from tests.marketplace.pages import scenes
from tests.marketplace.pages.reading import text_of

KEY = bytes.fromhex("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a")


def rows(*filled: Mapping[str, object]) -> dict[str, object]:
    """What a browser sends of a windows form with these rows."""
    data: dict[str, object] = {"windows-TOTAL_FORMS": len(filled), "windows-INITIAL_FORMS": 0}
    for number, row in enumerate(filled):
        data |= {f"windows-{number}-{name}": value for name, value in row.items()}
    return data


def bob_with_money(bob: User) -> User:
    operator = User.objects.get(email="olive@example.org")
    grant_post(
        user=bob, amount_microusd=10 * cast.USD, operator=operator, idempotency_key="more", reason="more."
    )
    return bob


@pytest.fixture
def laptop(ada) -> Device:
    return scenes.device_of(ada, "Laptop")


def test_without_a_device_the_page_says_how_to_get_one(browser):
    assert "No device yet" in text_of(browser.get("/devices/"))


def test_before_the_first_device_the_page_says_when_it_will_work(browser, ada):
    words = "With your first device they become: every day, 22:00 to 07:00."
    assert words.casefold() in text_of(browser.get("/devices/")).casefold()
    scenes.device_of(ada, "Laptop")
    assert words.casefold() not in text_of(browser.get("/devices/")).casefold()


def test_a_code_is_shown_once_with_the_command_and_pairs_a_device(browser, ada, settings):
    page = browser.post("/devices/pair/")
    code = page.context["pairing"].code
    assert f"--server {settings.PUBLIC_URL} --pair {code}" in page.content.decode()
    assert code not in browser.get("/devices/").content.decode()
    device_pair(code=code, public_key=KEY, name="Phone", kind="phone", device_class="phone-high")
    assert "Phone" in text_of(browser.get("/devices/list/"))


def test_a_phone_scans_the_code_in_a_fragment_that_no_server_sees(browser, settings):
    settings.PUBLIC_URL = "https://nightshift.example"
    page = browser.post("/devices/pair/")
    panel = page.context["pairing"]
    assert panel.phone_url == f"https://nightshift.example/device/#code={panel.code}"
    assert segno.make(panel.phone_url, error="m").svg_inline(
        border=4, svgclass="qr", lineclass=None, omitsize=True
    ) == str(panel.qr_svg)
    assert panel.qr_svg in page.content.decode()
    assert "style=" not in panel.qr_svg
    assert "does not begin with https" not in text_of(page)


def test_an_address_that_phones_cannot_use_is_said(browser, settings):
    settings.PUBLIC_URL = "http://127.0.0.1:8000"
    assert "does not begin with https" in text_of(browser.post("/devices/pair/"))


def test_too_many_codes_are_refused_in_words(browser, ada):
    later = utc_now() + timedelta(minutes=5)
    PairingCode.objects.bulk_create(
        PairingCode(owner=ada, digest=str(number), expires_at=later) for number in range(20)
    )
    page = browser.post("/devices/pair/")
    assert page.status_code == 409
    assert "unused pairing codes" in text_of(page)


def test_each_device_is_shown_in_words(browser, ada):
    scenes.fleet(ada)
    text = text_of(browser.get("/devices/"))
    assert re.search(r"Kitchen tablet Resting Battery below 40.%: resumes at 45.%", text)
    assert "Living room laptop Ready" in text
    assert "Spare Paused Gets no work until you resume it." in text
    assert "Travel laptop Not connected Last seen 5 hours ago" in text
    assert "Monday to Friday, 22:00 to 07:00" in text


def test_earnings_are_what_the_ledger_paid_after_the_fee(browser, ada, bob, laptop):
    job = scenes.trained(cast.quoted_job(bob_with_money(bob)), rounds=2, owner=ada)
    scenes.worked(ada, ["Laptop"])
    fleet = browser.get("/devices/").context["fleet"]
    assert fleet.earnings_microusd == fleet.today_microusd == fleet.week_microusd == 29_920 + 29_992
    assert fleet.devices[0].activity.week_results == 2
    Lease.objects.filter(shard__round__run=cast.run_of(job)).update(ended_at=utc_now() - timedelta(days=3))
    activity = browser.get(f"/devices/{laptop.pk}/").context["view"].activity
    assert (activity.today_microusd, activity.week_microusd) == (0, 29_920 + 29_992)


def test_work_under_way_and_a_bench_are_shown(browser, ada, bob, laptop):
    job = scenes.trained(cast.quoted_job(bob_with_money(bob)), rounds=1, owner=ada)
    scenes.connected(laptop)
    idle_windows_replace(owner=ada, device_id=None, windows=scenes.ALWAYS)
    scenes.benched(laptop)
    assert "Failed 3 times in a row" in text_of(browser.get(f"/devices/{laptop.pk}/"))
    scenes.round_under_way(job, laptop)
    assert "step 12 of 6" in text_of(browser.get(f"/devices/{laptop.pk}/"))


def test_renaming_pausing_resuming_and_removing(browser, laptop):
    page = f"/devices/{laptop.pk}/"
    browser.post(f"{page}rename/", {"name": "Shelf"})
    browser.post(f"{page}pause/")
    laptop.refresh_from_db()
    assert (laptop.name, laptop.state) == ("Shelf", "paused")
    assert b"Resume" in browser.get(page).content
    browser.post(f"{page}resume/")
    laptop.refresh_from_db()
    assert laptop.state == "active"
    assert browser.post(f"{page}remove/").url == "/devices/"
    assert browser.get(page).status_code == 404


def test_a_name_that_cannot_be_used_is_refused_beside_the_field(browser, laptop):
    page = browser.post(f"/devices/{laptop.pk}/rename/", {"name": "two\tlines"})
    assert page.status_code == 400
    assert "name" in page.context["name_form"].errors


def test_the_rules_are_saved_and_bad_ones_refused_beside_their_field(browser, laptop):
    address = f"/devices/{laptop.pk}/policy/"
    rules = {"battery_floor_percent": 25, "too_hot_celsius": 45, "wifi_only": "on"}
    assert browser.post(address, rules).status_code == 302
    laptop.refresh_from_db()
    assert (laptop.battery_floor_percent, laptop.too_hot_celsius) == (25, 45)
    assert (laptop.wifi_only, laptop.charging_only) == (True, False)
    page = browser.post(address, {**rules, "battery_floor_percent": 99})
    assert page.status_code == 400
    assert list(page.context["policy_form"].errors) == ["battery_floor_percent"]


def test_a_row_of_windows_stands_for_all_its_days(browser, ada):
    night = {"days": [0, 4], "starts": "22:00", "ends": "07:00"}
    empty = {"days": [], "starts": "", "ends": ""}
    assert browser.post("/devices/windows/", rows(night, empty)).url == "/devices/"
    assert common_windows_of(ada) == [Window(0, time(22), time(7)), Window(4, time(22), time(7))]
    shown = browser.get("/devices/").context["windows_form"]
    assert [form.initial.get("days") for form in shown] == [(0, 4), None]


def test_a_device_can_have_windows_of_its_own_and_lose_them_again(browser, ada, laptop):
    address = f"/devices/{laptop.pk}/windows/"
    browser.post(address, rows({"days": [6], "starts": "09:30", "ends": "12:00"}))
    assert windows_of_device(laptop) == [Window(6, time(9, 30), time(12))]
    assert common_windows_of(ada) == []
    browser.post(address, rows({"days": [], "starts": "09:30", "ends": "12:00"}))
    assert windows_of_device(laptop) == []


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ([{"days": [0], "starts": "", "ends": "07:00"}], "Give a time such as 22:00."),
        ([{"days": [0], "starts": "25:00", "ends": "07:00"}], "Enter a valid time."),
        ([{"days": [9], "starts": "22:00", "ends": "07:00"}], "9 is not one of the available choices"),
        (
            [{"days": [0], "starts": "22:00", "ends": "07:00"}] * 2,
            "Two windows start on Monday at 22:00; keep one.",
        ),
    ],
)
def test_windows_that_cannot_be_are_refused_and_the_old_ones_stay(browser, ada, wrong, words):
    idle_windows_replace(owner=ada, device_id=None, windows=scenes.NIGHTS)
    page = browser.post("/devices/windows/", rows(*wrong))
    assert page.status_code == 400
    assert words in text_of(page)
    assert len(common_windows_of(ada)) == len(scenes.NIGHTS)


def test_a_form_without_its_rows_is_refused(browser, ada):
    idle_windows_replace(owner=ada, device_id=None, windows=scenes.NIGHTS)
    assert browser.post("/devices/windows/", {}).status_code == 400
    assert len(common_windows_of(ada)) == len(scenes.NIGHTS)
