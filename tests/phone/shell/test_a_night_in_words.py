"""Night mode as its owner sees it: what it does, what it earns, why it rests, and that a tap stops it."""

from itertools import pairwise
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.phone.shell.phone import Phone

pytestmark = [pytest.mark.browser, pytest.mark.slow]

HOUR_MS = 3_600_000
TERMS: dict[str, Any] = {
    "opens_ms": None,
    "closes_ms": None,
    "battery_floor_percent": 35,
    "battery_resume_percent": 40,
    "charging_only": True,
    "wifi_only": True,
    "too_hot_celsius": 40,
    "microusd_per_gpu_hour": 432_000,
    "earned_microusd": 0,
}
WAKE_LOCK = """
    globalThis.locks = { taken: 0, now: [] };
    Object.defineProperty(navigator, "wakeLock", { value: { async request() {
        locks.taken += 1;
        const lock = new EventTarget();
        lock.released = false;
        lock.release = async () => { lock.released = true; lock.dispatchEvent(new Event("release")); };
        locks.now.push(lock);
        return lock;
    } } });
    let seen = "visible";
    Object.defineProperty(document, "visibilityState", { get: () => seen });
    globalThis.see = (state) => { seen = state; document.dispatchEvent(new Event("visibilitychange")); };
"""


PAIRED = """import("/static/worker_protocol/worker/keys.js").then(async ({ identityCreate, identitySave }) => {
    const { keys } = await identityCreate();
    const deviceId = crypto.randomUUID();
    await identitySave({ keys, deviceId, server: location.origin, name: "Pixel" });
})"""


@pytest.fixture
def paired(phone: Phone) -> Phone:
    """A browser that has an identity; no site is asked about it, as the worker is played."""
    phone.open()
    phone.js(PAIRED)
    phone.open()
    phone.until_screen("home")
    return phone


@pytest.fixture
def night(paired: Phone) -> Phone:
    paired.tap("#start")
    paired.until_screen("night")
    paired.until_text("Waiting for work", "#doing")
    return paired


def test_a_night_begins_with_what_the_sensors_say(night):
    sensors = night.told("sensors")[0]
    assert set(sensors) == {"type", "batteryPercent", "charging", "network", "visible"}
    assert sensors["visible"] is True
    assert len(night.told("start")) == 1


def test_it_shows_the_piece_of_work_what_came_in_and_the_window(night):
    closes_ms = night.js(f"Date.now() + 2 * {HOUR_MS}")
    night.become(
        phase="training",
        lease={"step": 7, "steps": 20, "leaseId": "x"},
        terms={**TERMS, "closes_ms": closes_ms},
        thermal="fair",
        speed=0.62,
        earnedMicrousd=431_200,
    )
    night.until_text("Training", "#doing")
    assert night.text("#detail") == "Step 7 of 20"
    assert night.js("document.querySelector('#shard').value") == 0.35
    assert night.text(".earned") == "$0.4312 tonight"
    assert night.text("#window").startswith("Window open until")
    assert "warm, at 62 % of its speed" in night.text("#heat")


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("battery_low", "The battery is below your floor of 35 %. It goes on at 40 %."),
        ("not_charging", "The device is not charging. Plug it in, and it goes on."),
        ("not_on_wifi", "The device is not on Wi-Fi."),
        ("too_hot", "The device is too warm"),
        ("paused", "You have paused this device. Resume it on the Devices page."),
        ("hidden", "The app is not on the screen."),
    ],
)
def test_a_pause_is_explained_with_the_numbers_in_force(night, reason, words):
    night.become(phase="paused", reason=reason, terms=TERMS)
    night.until_text(words, "#face")


def test_outside_the_windows_it_says_when_the_next_one_opens(night):
    opens_ms = night.js(f"Date.now() + 3 * {HOUR_MS}")
    night.become(phase="paused", reason="outside_window", terms={**TERMS, "opens_ms": opens_ms})
    night.until_text("It is outside your idle windows. It starts by itself at", "#face")
    assert night.text("#window").startswith("Next window at")


def test_a_tap_stops_it_and_says_so_and_it_can_start_again(night):
    night.become(
        phase="training", lease={"step": 1, "steps": 9, "leaseId": "x"}, leasesDone=2, earnedMicrousd=52_000
    )
    night.until_text("Training", "#doing")
    night.tap("#stop")
    night.until_screen("stopped")
    assert "Nothing is running on this device now. Earned tonight: $0.05." in night.text()
    assert len(night.told("stop")) == 1
    night.tap("#again")
    night.until_screen("night")
    night.wait(lambda: len(night.told("start")) == 2, "another start")


def test_a_worker_that_does_not_answer_is_stopped_all_the_same(night):
    night.js("director.sleepy = true")
    taken_ms = night.js("""new Promise((resolve) => {
        const since = performance.now();
        document.querySelector("#stop").click();
        const look = () => document.querySelector("[data-screen=stopped]").hidden
            ? setTimeout(look, 10) : resolve(performance.now() - since);
        look();
    })""")
    assert taken_ms >= 900  # it had its chance
    assert "it was ended" in night.text("#stopped-words")


def test_the_escape_key_stops_it_too(night):
    night.page.keyboard.press("Escape")
    night.until_screen("stopped")


def test_the_button_that_covers_the_screen_has_the_focus_and_a_name(night):
    stop = night.page.get_by_role("button", name="Stop working")
    expect(stop).to_have_id("stop")
    expect(stop).to_be_focused()


def test_the_screen_is_kept_on_and_again_after_the_page_was_hidden(paired):
    paired.open("/device/", before=WAKE_LOCK)
    paired.tap("#start")
    paired.until_screen("night")
    assert paired.js("locks.taken") == 1
    paired.js("see('hidden'); locks.now[0].release()")
    paired.wait(
        lambda: paired.told("sensors")[-1:] and not paired.told("sensors")[-1]["visible"], "word of it"
    )
    assert paired.js("locks.taken") == 1
    paired.js("see('visible')")
    paired.wait_for("locks.taken === 2")
    paired.tap("#stop")
    paired.until_screen("stopped")
    assert paired.js("locks.now.every((lock) => lock.released)")


def test_a_browser_that_cannot_keep_the_screen_on_says_what_to_set(paired):
    paired.open("/device/", before="delete Navigator.prototype.wakeLock")
    paired.tap("#start")
    paired.until_text("This browser cannot keep the screen on.", "#warned")


def test_the_clock_moves_from_minute_to_minute_and_stays_on_the_screen(night):
    places = night.js("""import("/static/worker_protocol/app/drift.js").then(({ driftAt }) =>
        Array.from({ length: 24 * 60 }, (_, minute) => driftAt(minute)))""")
    assert all(abs(place["x"]) <= 1 and abs(place["y"]) <= 1 for place in places)
    assert all(one != other for one, other in pairwise(places))
    for corner in ({"x": -1, "y": -1}, {"x": 1, "y": 1}):
        box = night.js(f"""(() => {{
            const face = document.querySelector("#face");
            face.style.transition = "none";
            face.style.setProperty("--drift-x", {corner["x"]});
            face.style.setProperty("--drift-y", {corner["y"]});
            const {{ left, right, top, bottom }} = face.getBoundingClientRect();
            return left >= 0 && top >= 0 && right <= innerWidth && bottom <= innerHeight;
        }})()""")
        assert box, corner


@pytest.mark.parametrize(
    ("code", "words", "button"),
    [
        ("auth_failed", "The site does not know this device\u2019s key.", "Pair again"),
        ("device_removed", "This device was removed on the Devices page.", "Pair again"),
        ("superseded", "This device is at work in another tab or window.", ""),
        ("other_tab", "This device is at work in another tab or window.", ""),
        ("no_gpu", "The browser gives this page no access to the GPU.", ""),
    ],
)  # fmt: skip
def test_what_ends_a_night_is_said_with_the_next_step(night, code, words, button):
    night.become(phase="ended", error={"code": code, "message": "For programs."})
    night.until_screen("home")
    assert words in night.text("#home-trouble")
    assert night.text("#home-act") == button


def test_a_device_that_is_not_known_any_more_is_paired_anew(night):
    night.become(phase="ended", error={"code": "device_removed", "message": ""})
    night.until_screen("home")
    expect(night.page.locator("#start")).to_be_hidden()
    night.tap("#home-act")
    night.until_screen("welcome")


def test_a_clock_that_is_hours_off_is_said(night):
    night.become(clockSkewMs=-3 * HOUR_MS)
    night.until_text("This device\u2019s clock is wrong by 3 hours.", "#warned")


def test_full_storage_is_said(night):
    night.become(error={"code": "storage_full", "message": ""})
    night.until_text("storage that the browser gives this app is full", "#face")


def test_a_worker_that_dies_is_started_again(night):
    night.js("director.fail()")
    night.wait(lambda: len(night.told("start")) == 2, "another start")
    assert night.screen == "night"
    night.complaints.clear()  # the death was meant


@pytest.mark.parametrize(
    ("family", "code", "words"),
    [
        ("handback", "too_big", "A job needed more memory than this browser gives a page."),
        ("handback", "bad_program", "A job\u2019s program is newer than this app"),
        ("handback", "device_lost", "The browser lost its GPU in the middle of a piece of work."),
        ("revoke", "cancelled", "The buyer no longer needs a piece of work."),
        ("refused", "delta_norm", "The site refused a result"),
    ],
)
def test_a_piece_of_work_that_did_not_end_well_is_explained(night, family, code, words):
    night.become(setback={"family": family, "code": code})
    night.until_text(words, "#detail")
    night.become(phase="training", lease={"step": 1, "steps": 9, "leaseId": "x"})
    night.until_text("Step 1 of 9", "#detail")


def test_a_check_before_work_is_said(night):
    night.become(phase="connecting", reason="self_test")
    night.until_text("Checking the GPU", "#doing")
    assert "known answers" in night.text("#detail")


def test_a_device_that_computes_wrong_gets_no_work_and_is_told_why(night):
    night.become(phase="ended", error={"code": "self_test_failed", "message": "Wrong: softmax."})
    night.until_screen("home")
    words = (
        "This browser computes wrong results, so the device gets no work. Wrong: softmax. Update the browser"
    )
    assert words in night.text("#home-trouble")
