"""Pictures of each screen of the phone app, on a site whose worker is played: `python -m tests.phone.shell.pictures`.

Part of `python -m tests.screens`, which saves them beside the site's pages.
"""

import sys
import tempfile
from base64 import b64decode
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.chromium import WEBGPU_FLAGS, browser
from tests.phone.shell.conftest import Site, complaints
from tests.phone.shell.phone import Phone

OUT = Path("var/screens")
LOOKS = {"phone": (390, 844, "light"), "dark": (390, 844, "dark"), "desktop": (1440, 900, "light")}
SETTLED = "new Promise((resolve) => setTimeout(resolve, 400))"
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
            with browser(Path(folder) / "profile", flags=WEBGPU_FLAGS) as chromium:
                phone = Phone(chromium, site.address)
                save = _saver(phone, out)
                enrolment(phone, site.code(), save)
                night(phone, save)
                troubles(phone, save)
                return complaints(chromium)
        finally:
            site.end()


def enrolment(phone: Phone, code: str, save: Save) -> None:
    phone.open(f"/device/#code={code}")
    phone.until_screen("welcome")
    save("welcome")
    phone.tap("#welcome-go")
    phone.wait_for("document.querySelector('#probe-go:not(:disabled)')")
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


def troubles(phone: Phone, save: Save) -> None:
    phone.forget_everything()
    phone.open(
        "/device/#code=ABCD-EFGH",
        before=f"Object.defineProperty(navigator, 'userAgent', {{value: '{IPHONE}'}})",
    )
    phone.tap("#welcome-go")
    phone.wait_for("document.querySelector('#install-advice').checkVisibility()")
    save("probe-iphone")
    phone.open()
    phone.answers(probe=[{"type": "probe", "missing": ["webgpu"]}])
    phone.tap("#welcome-go")
    phone.wait_for("document.querySelector('#probe-again').checkVisibility()")
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


def _saver(phone: Phone, out: Path) -> Save:
    call = phone.chromium.call

    def save(name: str) -> None:
        for look, (width, height, scheme) in LOOKS.items():
            metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": look != "desktop"}
            call("Emulation.setDeviceMetricsOverride", **metrics)
            features = [
                {"name": "prefers-color-scheme", "value": scheme},
                {"name": "prefers-reduced-motion", "value": "reduce"},
            ]
            call("Emulation.setEmulatedMedia", features=features)
            phone.js(SETTLED)
            (out / f"app-{name}-{look}.png").write_bytes(b64decode(call("Page.captureScreenshot")["data"]))
        call("Emulation.clearDeviceMetricsOverride")

    return save


if __name__ == "__main__":
    sys.exit(main())
