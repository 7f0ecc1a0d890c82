"""Pictures of each screen of the phone app, on a site whose worker is played: `python -m tests.phone.shell.pictures`.

Part of `python -m tests.screens`, which saves them beside the site's pages.
"""

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Literal

from playwright.sync_api import Browser

from tests.chromium import chromium
from tests.phone.shell.conftest import Site
from tests.phone.shell.phone import Phone

OUT = Path("var/screens")
LOOKS: Final[dict[str, tuple[int, int, Literal["light", "dark"]]]] = {
    "phone": (390, 844, "light"),
    "dark": (390, 844, "dark"),
    "desktop": (1440, 900, "light"),
}
IPHONE = "Mozilla/5.0 (iPhone; CPU iPhone OS 26_0 like Mac OS X) AppleWebKit/605.1.15 Mobile Safari/604.1"
HOUR_MS = 3_600_000
BUSY: dict[str, Any] = {
    "phase": "training",
    "lease": {"step": 7, "steps": 20, "leaseId": "x"},
    "thermal": "nominal",
    "speed": 0.97,
    "earnedMicrousd": 431_200,
    "leasesDone": 12,
}
Save = Callable[[str], None]


def main() -> int:
    OUT.mkdir(parents=True, exist_ok=True)
    found = pictures(OUT)
    print("\n".join(found) or f"pictures of the phone app in {OUT}, no complaints")
    return 1 if found else 0


def pictures(out: Path) -> list[str]:
    """Save every screen in each look; returns what the browser complained about."""
    with tempfile.TemporaryDirectory(prefix="nightshift-phone-") as folder:
        site = Site(Path(folder))
        try:
            with chromium() as browser:
                phone = _phone(browser, site)
                save = _saver(phone, out)
                enrolment(phone, site.code(), save)
                night(phone, save)
                iphone, stranger = _phone(browser, site, user_agent=IPHONE), _phone(browser, site)
                installed_first(iphone, _saver(iphone, out))
                troubles(stranger, _saver(stranger, out))
                return phone.complaints + iphone.complaints + stranger.complaints
        finally:
            site.end()


def enrolment(phone: Phone, code: str, save: Save) -> None:
    phone.open(f"/device/#code={code}")
    phone.until_screen("welcome")
    save("welcome")
    phone.tap("#welcome-go")
    phone.until_visible("#probe-go:not(:disabled)")
    save("probe")
    phone.answers(benchmark=[{"type": "benchmark", "progress": 0.4}])
    phone.tap("#probe-go")
    phone.wait_for("document.querySelector('#measure-progress').value > 0")
    save("measure")
    speed = {"flopsPerSecond": 1.51e11, "deviceClass": "phone-entry", "speedFactor": 1.4}
    phone.js(f"director.say({{ type: 'benchmark', result: {speed} }})")
    phone.until_screen("offer")
    phone.type("#name", "Pixel by the bed")
    save("offer")
    phone.tap("#offer-go")
    phone.until_screen("home")
    save("paired")


def night(phone: Phone, save: Save) -> None:
    now_ms = phone.js("Date.now()")
    terms = {
        "opens_ms": now_ms + 14 * HOUR_MS,
        "closes_ms": now_ms + 5 * HOUR_MS,
        "battery_floor_percent": 40,
        "battery_resume_percent": 45,
    }
    phone.tap("#start")
    phone.until_text("Waiting for work", "#doing")
    save("night-waiting")
    phone.become(**BUSY, terms=terms)
    phone.until_text("Training", "#doing")
    save("night-training")
    phone.become(phase="paused", reason="battery_low", lease=None, clockSkewMs=3 * HOUR_MS)
    phone.until_text("below your floor", "#doing")
    save("night-paused")
    phone.tap("#stop")
    phone.until_screen("stopped")
    save("night-stopped")
    phone.tap("#done")
    phone.until_screen("home")
    save("home")
    phone.tap("#start")
    phone.until_screen("night")
    phone.become(phase="ended", reason=None, error={"code": "device_removed", "message": ""})
    phone.until_screen("home")
    save("home-removed")


def installed_first(phone: Phone, save: Save) -> None:
    phone.open("/device/#code=ABCD-EFGH")
    phone.tap("#welcome-go")
    phone.until_visible("#install-advice")
    save("probe-iphone")


def troubles(phone: Phone, save: Save) -> None:
    phone.open()
    phone.answers(probe=[{"type": "probe", "missing": ["webgpu"]}])
    phone.tap("#welcome-go")
    phone.until_visible("#probe-again")
    save("probe-lacks")
    phone.open()
    phone.tap("#welcome-go")
    phone.tap("#probe-go")
    phone.until_screen("join")
    phone.tap("#code-form button:not([type=button])")
    phone.until_text("not a pairing code", "#code-error")
    save("join")
    phone.answers(self_test=[{"type": "self_test", "ok": False, "failed": ["conv_forward"], "cases": []}])
    phone.type("#code", "ABCD-EFGH")
    phone.tap("#code-form button:not([type=button])")
    phone.until_text("computes wrong", "#measure-trouble")
    save("measure-wrong")


def _phone(browser: Browser, site: Site, **options: Any) -> Phone:
    """A browser that knows nothing yet."""
    return Phone(browser.new_context(reduced_motion="reduce", **options), site.address)


def _saver(phone: Phone, out: Path) -> Save:
    def save(name: str) -> None:
        for look, (width, height, scheme) in LOOKS.items():
            phone.page.set_viewport_size({"width": width, "height": height})
            phone.page.emulate_media(color_scheme=scheme)
            phone.page.screenshot(path=out / f"app-{name}-{look}.png", animations="disabled")

    return save


if __name__ == "__main__":
    sys.exit(main())
