"""The app in a browser, as a test uses it: what it shows, what is tapped and typed, and what its worker is told."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.chromium import Chromium

DIRECTOR = Path(__file__).with_name("director.js").read_text()
PATIENCE_S = 120  # a bound on hanging, not on slowness
LOOK_S = 0.05


class Phone:
    """`played` says that the site's worker is one that tests play by the director."""

    def __init__(self, chromium: Chromium, address: str, *, played: bool = True) -> None:
        self.chromium = chromium
        self.address = address
        self._director = DIRECTOR if played else ""
        self.patience_s = PATIENCE_S

    # ---- getting there

    def open(self, path: str = "/device/", *, before: str = "") -> None:
        """Load a page of the site. `before` is JavaScript that runs ahead of the page's own."""
        script = self.chromium.call(
            "Page.addScriptToEvaluateOnNewDocument", source=f"{self._director}\n{before}"
        )
        self.chromium.navigate("about:blank")  # so that another fragment is another load
        self.chromium.navigate(f"{self.address}{path}")
        self.chromium.call("Page.removeScriptToEvaluateOnNewDocument", identifier=script["identifier"])

    def forget_everything(self) -> None:
        self.chromium.navigate("about:blank")
        self.chromium.call("Storage.clearDataForOrigin", origin=self.address, storageTypes="all")
        self.chromium.call("Network.clearBrowserCookies")

    # ---- doing

    def tap(self, selector: str) -> None:
        self.wait_for(
            f"document.querySelector({json.dumps(selector)})?.matches(':not(:disabled)')"
            f"&& document.querySelector({json.dumps(selector)}).checkVisibility()"
        )
        self.js(f"document.querySelector({json.dumps(selector)}).click()")

    def type(self, selector: str, text: str) -> None:
        self.js(f"document.querySelector({json.dumps(selector)}).value = {json.dumps(text)}")

    def js(self, expression: str) -> Any:
        return self.chromium.evaluate(expression, timeout_s=PATIENCE_S)

    def become(self, **changes: object) -> None:
        """The worker's state, from now on."""
        self.js(f"director.become({json.dumps(changes)})")

    def answers(self, **answers: list[dict[str, Any]]) -> None:
        """What the worker answers to messages of the page, by their type."""
        self.js(f"Object.assign(director.answers, {json.dumps(answers)})")

    def told(self, kind: str) -> list[dict[str, Any]]:
        """What the page has told the worker, of one type."""
        heard: list[dict[str, Any]] = self.js("director.heard")
        return [message for message in heard if message["type"] == kind]

    # ---- seeing

    @property
    def screen(self) -> str | None:
        name: str | None = self.js("document.querySelector('[data-screen]:not([hidden])')?.dataset.screen")
        return name

    def text(self, selector: str = "body") -> str:
        """What a person can read there."""
        text: str = self.js(f"document.querySelector({json.dumps(selector)}).innerText")
        return " ".join(text.split())

    def until_screen(self, name: str) -> None:
        self.wait(lambda: self.screen == name, f"the screen {name}")

    def until_text(self, words: str, selector: str = "body") -> None:
        self.wait(lambda: words in self.text(selector), f"{words!r} in {selector}")

    def wait_for(self, expression: str) -> None:
        self.wait(lambda: bool(self.js(f"Boolean({expression})")), expression)

    def wait(self, true: Callable[[], object], what: str) -> None:
        deadline = time.monotonic() + self.patience_s
        while not true():
            if time.monotonic() > deadline:
                raise AssertionError(f"waited in vain for {what}; there is: {self.text()}")
            time.sleep(LOOK_S)
