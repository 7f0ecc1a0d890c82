"""The owner's whole way, with nothing played: a scanned code, known answers, speed, paired, a night, money."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.phone.shell.phone import Phone
from tests.worker_protocol.test_real_devices_at_a_real_site import World

pytestmark = [pytest.mark.browser, pytest.mark.end_to_end, pytest.mark.slow, pytest.mark.timeout(400)]

PATIENCE_S = 150  # a bound on hanging, not on slowness


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path, site_module="tests.phone.shell.real_site")
    yield world
    world.end()


def test_from_a_scanned_code_to_money_that_is_shown(world: World, chromium: Browser) -> None:
    site = world.start_site()
    assert site.stdout is not None
    code = json.loads(site.stdout.readline())["codes"][0]
    phone = Phone(chromium.new_context(), world.url, played=False, patience_s=PATIENCE_S)
    phone.open(f"/device/#code={code}")
    phone.tap("#welcome-go")
    phone.tap("#probe-go")
    phone.until_screen("offer")
    assert "today\u2019s rate for \u201cLaptop, processor only\u201d" in phone.text("#offer-basis")
    phone.tap("#offer-go")
    phone.until_screen("home")
    phone.tap("#start")
    phone.until_screen("night")
    phone.wait_for("document.querySelector('#earned').textContent !== '$0.00'")
    shown_microusd = float(phone.text("#earned").removeprefix("$")) * 1_000_000
    ((charged_microusd,),) = world.ask(
        "select sum(charge_microusd) from scheduler_lease where state = 'accepted'"
    )
    assert 0 < shown_microusd <= charged_microusd
    phone.tap("#stop")
    phone.until_screen("stopped")
    assert "Nothing is running on this device now. Earned tonight: $" in phone.text("#stopped-words")
    assert phone.complaints == []
