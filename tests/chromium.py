"""A real browser: Debian's Chromium, headless, driven by Playwright.

Playwright's loop runs in the thread that opened it, and as long as it is open that thread can neither run coroutines
nor use Django's ORM. So a browser lives no longer than the module of tests that uses it; it opens in half a second.
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from playwright.sync_api import Browser, BrowserContext, BrowserType, ConsoleMessage, sync_playwright

FLAGS = [
    "--disable-quic",
    # WebGPU on the processor, as the machine may have no GPU. Unsafe means: with timestamps, among others.
    "--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader",
]  # fmt: skip

PHONE: Final[dict[str, Any]] = {
    "viewport": {"width": 390, "height": 844},
    "device_scale_factor": 2,
    "is_mobile": True,
    "has_touch": True,
}
NETWORK_ERRORS = ("Failed to load resource", "WebSocket connection to")


class ChromiumMissing(Exception):
    """No Chromium is installed."""


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser of its own; each of its contexts has a profile that nobody else sees. Raises `ChromiumMissing`."""
    chromium_program()  # ahead, so that nothing has to be closed again
    with sync_playwright() as playwright, launch(playwright.chromium) as browser:
        yield browser


def launch(kind: BrowserType) -> Browser:
    """Another browser beside one that is open: `launch(browser.browser_type)`."""
    return kind.launch(executable_path=chromium_program(), args=FLAGS)


def chromium_program() -> str:
    names = ("chromium", "chromium-browser", "google-chrome")
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        raise ChromiumMissing("This needs Chromium: sh tests/install_programs.sh says how to get it.")
    return found


def complaints(context: BrowserContext) -> list[str]:
    """What goes wrong on pages of the context from now on: errors that nobody caught, and all that the policy stops.

    Failed requests are not among it: pages answer for those themselves.
    """
    found: list[str] = []
    context.on("weberror", lambda error: found.append(str(error.error)))

    def hear(message: ConsoleMessage) -> None:
        if message.type == "error" and not message.text.startswith(NETWORK_ERRORS):
            found.append(message.text)

    context.on("console", hear)
    return found
