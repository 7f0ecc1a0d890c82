"""The last 24 hours on the pages and in the API: the same figures, the reason where there are none, and the rules."""

import re
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts.models import Device
from accounts.selectors import device_profile
from accounts.services import api_token_create, device_remove, idle_windows_replace
from billing.models import Earning
from common.clock import utc_now
from marketplace.pages.nights import rules_in_force
from tests.marketplace import cast
from tests.marketplace.pages import scenes
from tests.marketplace.pages.reading import text_of
from tests.marketplace.pages.test_owners_look_after_their_devices import bob_with_money

pytestmark = pytest.mark.django_db


@pytest.fixture
def laptop(ada) -> Device:
    idle_windows_replace(owner=ada, device_id=None, windows=scenes.ALWAYS)
    device = scenes.device_of(ada, "Laptop")
    scenes.connected(device)
    return device


@pytest.fixture
def paid(ada, bob, laptop: Device) -> Device:
    """The laptop has had two results accepted, one of them half a day ago."""
    scenes.trained(cast.quoted_job(bob_with_money(bob)), rounds=2, owner=ada)
    scenes.worked(ada, ["Laptop"])
    scenes.spread(ada, hours=[12.5, 0.5])
    return laptop


def activity(browser, device: Device, query: str = ""):
    return browser.get(f"/api/devices/{device.pk}/activity/{query}", headers={"Accept": "application/json"})


def test_the_page_and_the_api_say_the_same_of_a_device_that_earned(browser, paid):
    body = activity(browser, paid).json()
    page = browser.get(f"/devices/{paid.pk}/")
    assert body["earned_microusd"] == 29_920 + 29_992 == page.context["night"].night.record.earned_microusd
    assert body["accepted"] == 2
    assert [hour["earned_microusd"] for hour in body["hours"] if hour["accepted"]] == [29_920, 29_992]
    assert body["explanation"] is None
    assert "$0.059912" in text_of(page)
    assert body["earned_week_microusd"] == page.context["view"].activity.week_microusd


def test_the_seconds_of_every_hour_add_up_and_hours_can_be_chosen(browser, paid):
    scenes.night_of(paid, ("not_charging", 20, 14.3), (None, 14.2, 0))
    body = activity(browser, paid, "?hours=48").json()
    assert len(body["hours"]) == 48
    assert all(sum(hour["seconds"].values()) == 3600 for hour in body["hours"][:-1])
    assert {"working", "free", "not_charging", "offline"} == set(body["seconds"])
    assert [activity(browser, paid, f"?hours={n}").status_code for n in (0, 169, "x")] == [400] * 3


def test_why_nothing_was_earned_stands_on_both_pages_and_in_the_api(browser, laptop):
    scenes.night_of(laptop, ("not_charging", 20, 0))
    sentence = "It was not on its charger for"
    for path in ("/devices/", f"/devices/{laptop.pk}/"):
        assert sentence in text_of(browser.get(path))
    explanation = activity(browser, laptop).json()["explanation"]
    assert explanation["code"] == "not_charging"
    assert "Plug it in" in explanation["next_step"]


def test_the_table_behind_the_chart_says_what_each_hour_went_to(browser, laptop):
    scenes.night_of(laptop, ("battery_low", 5, 2), (None, 2, 0))
    text = text_of(browser.get(f"/devices/{laptop.pk}/"))
    assert re.search(r"[A-Z][a-z]{2} \d\d:00 battery too low 1 h 0 ", text)
    assert "not connected 1 h 0 " in text


def test_what_is_in_force_is_named_with_its_numbers(browser, ada, laptop):
    Device.objects.update(battery_floor_percent=30, too_hot_celsius=44, charging_only=False, wifi_only=False)
    text = text_of(browser.get(f"/devices/{laptop.pk}/")).replace("\u00a0", " ")
    for words in (
        "Stops below 30 %, goes on at 35 %",
        "Stops at 44 °C, goes on at 39 °C",
        "Charging or not",
        "Any network",
        "Europe/Berlin",
    ):
        assert words in text
    profile = device_profile(laptop.pk)
    assert profile is not None
    assert {rule.name for rule in rules_in_force(profile, now=utc_now())} == {
        "Window", "Charger", "Battery", "Network", "Heat",
    }  # fmt: skip


def test_a_hundred_devices_cost_no_more_queries_than_one(browser, ada, laptop):
    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            assert browser.get("/devices/").status_code == 200
        return len(captured)

    browser.get("/devices/")
    one = queries()
    for number in range(30):
        scenes.night_of(scenes.device_of(ada, f"Phone {number}"), (None, 3, 1))
    assert queries() == one


def test_nobody_sees_what_anothers_device_did(bobs_browser, laptop):
    assert activity(bobs_browser, laptop).status_code == 404


@pytest.mark.parametrize(("scope", "status"), [("devices:read", 200), ("jobs:read", 403)])
def test_a_token_needs_the_scope(client, ada, laptop, scope, status):
    _, plain = api_token_create(user=ada, name="test", scopes=[scope])
    path = f"/api/devices/{laptop.pk}/activity/"
    assert client.get(path, headers={"Authorization": f"Bearer {plain}"}).status_code == status


def test_all_devices_are_paused_and_resumed_at_one_press(browser, ada, laptop):
    scenes.device_of(ada, "Spare", state=Device.State.PAUSED)
    scenes.device_of(ada, "Phone")
    page = browser.post("/devices/pause/", follow=True)
    assert "2 devices paused: no work until you resume." in text_of(page)
    assert "Pause all" not in text_of(page)
    page = browser.post("/devices/resume/", follow=True)
    assert "3 devices resumed" in text_of(page)
    assert "Resume all" not in text_of(page)


def test_the_earnings_page_counts_by_day_and_device_and_says_what_matures_when(browser, ada, paid, settings):
    view = browser.get("/earnings/").context["earnings"]
    assert view.total_microusd == 29_920 + 29_992 == view.balances.maturing_microusd
    assert sum(amount for _, amount in view.days) == view.total_microusd
    assert sum(row.results for row in view.devices) == 2
    text = text_of(browser.get("/earnings/"))
    matures = view.balances.next_matures_at
    assert matures - utc_now() <= timedelta(days=settings.EARNINGS_HOLD_BACK_DAYS)
    assert "the next mature on" in text
    assert "/earnings/" in browser.get("/wallet/").content.decode()


def test_a_device_that_is_removed_keeps_its_line_in_the_earnings(browser, ada, bob, laptop):
    scenes.trained(cast.quoted_job(bob_with_money(bob)), rounds=1, owner=ada)
    Device.objects.filter(pk=laptop.pk).update(id=Earning.objects.get().device_id)
    device_remove(owner=ada, device_id=Device.objects.get().pk)
    assert "Laptop removed" in text_of(browser.get("/earnings/"))


def test_without_earnings_the_page_says_so(bobs_browser):
    assert "Nothing earned yet" in text_of(bobs_browser.get("/earnings/"))
