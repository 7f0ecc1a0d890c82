"""A browser that cannot be a device says what it lacks and what to do; a camera that says no is no dead end."""

import pytest
from playwright.sync_api import Browser, expect

from tests.phone.shell.conftest import Site
from tests.phone.shell.phone import Phone
from tests.phone.shell.pictures import IPHONE

pytestmark = [pytest.mark.browser, pytest.mark.slow]

CAMERA = """
    globalThis.BarcodeDetector = class {
        static async getSupportedFormats() { return ["qr_code"]; }
        async detect() { return globalThis.seen ? [{ rawValue: globalThis.seen }] : []; }
    };
"""
REFUSED = f"""{CAMERA}
    if (isSecureContext) navigator.mediaDevices.getUserMedia = async () => {{
        throw new DOMException("no", "NotAllowedError");
    }};
"""
OPENED = f"""{CAMERA}
    if (isSecureContext) navigator.mediaDevices.getUserMedia = async () => {{
        const canvas = document.createElement("canvas");
        canvas.getContext("2d").fillRect(0, 0, 9, 9);
        globalThis.stream = canvas.captureStream();
        return stream;
    }};
"""


@pytest.mark.parametrize(
    ("missing", "words"),
    [
        ("webgpu", "This browser has no WebGPU, with which the work is computed. Use Safari on iOS 26"),
        ("gpu", "The browser gives this page no access to the GPU. Close other tabs"),
        ("ed25519", "This browser cannot make the kind of key that devices have."),
        (
            "indexeddb",
            "This browser keeps no data for the page, as in a private tab. Open the page in a normal tab.",
        ),
    ],
)
def test_what_is_missing_is_said_in_one_sentence_with_the_remedy(phone: Phone, missing: str, words: str):
    phone.open()
    phone.answers(probe=[{"type": "probe", "missing": [missing]}])
    phone.tap("#welcome-go")
    phone.until_text(words, "#checks")
    expect(phone.page.locator("#probe-go")).to_be_disabled()
    phone.answers(probe=[{"type": "probe", "missing": []}])
    phone.tap("#probe-again")
    expect(phone.page.locator("#probe-go")).to_be_enabled()


def test_an_iphone_is_led_to_the_home_screen_first(site: Site, chromium: Browser):
    with chromium.new_context(user_agent=IPHONE) as context:
        phone = Phone(context, site.address)
        phone.open("/device/#code=ABCD-EFGH")
        phone.tap("#welcome-go")
        phone.until_text("First put the app on the home screen. On this system", "#install-advice")
        assert "type ABCD-EFGH" in phone.text("#install-advice")
        assert phone.text("#probe-go") == "Go on in the browser all the same"


def test_wrong_results_end_the_enrolment_and_name_the_kernels(phone: Phone):
    phone.open("/device/#code=ABCD-EFGH")
    phone.answers(
        self_test=[{"type": "self_test", "ok": False, "failed": ["conv_forward", "softmax"], "cases": []}]
    )
    phone.tap("#welcome-go")
    phone.tap("#probe-go")
    phone.until_text("computes wrong results, so the device gets no work.", "#measure-trouble")
    assert "Wrong: conv_forward, softmax." in phone.text("#measure-trouble")
    assert phone.told("benchmark") == []


def test_a_camera_that_is_refused_leaves_other_ways(phone: Phone):
    phone.open(before=REFUSED)
    phone.tap("#welcome-go")
    phone.tap("#probe-go")
    phone.tap("#scan")
    phone.until_text("The browser may not use the camera.", "#code-error")
    assert "type the code" in phone.text("#code-error")
    expect(phone.page.locator("#scanner")).to_be_hidden()


def test_the_camera_reads_a_code_of_this_site_and_closes(phone: Phone):
    phone.open(before=OPENED)
    phone.tap("#welcome-go")
    phone.tap("#probe-go")
    phone.tap("#scan")
    phone.until_visible("#scanner")
    phone.js("seen = 'https://elsewhere.example/device/#code=ABCD-EFGH'")
    phone.page.wait_for_timeout(500)
    assert phone.screen == "join"
    phone.js("seen = `${location.origin}/device/#code=ABCD-EFGH`")
    phone.until_screen("offer")
    assert phone.js("stream.getTracks().every(({ readyState }) => readyState === 'ended')")


def test_what_is_no_code_is_refused_where_it_was_typed(phone: Phone):
    phone.open()
    phone.tap("#welcome-go")
    phone.tap("#probe-go")
    phone.until_screen("join")
    phone.type("#code", "HELLO")
    phone.tap("#code-form button:not([type=button])")
    phone.until_text("This is not a pairing code. Codes have eight letters and digits", "#code-error")
    expect(phone.page.locator("#code")).to_be_focused()
