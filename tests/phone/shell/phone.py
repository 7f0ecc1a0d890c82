"""The app in a browser, as a test uses it: what it shows, what is tapped and typed, and what its worker is told."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from playwright.sync_api import BrowserContext, expect

from tests.chromium import complaints

DIRECTOR = Path(__file__).with_name("director.js")
PATIENCE_S = 120  # a bound on hanging, not on slowness
LOOK_S = 0.05


class Phone:
    """`played` says that the site's worker is one that tests play by the director."""

    def __init__(
        self, context: BrowserContext, address: str, *, played: bool = True, patience_s: float = PATIENCE_S
    ) -> None:
        self.address = address
        self.complaints = complaints(context)
        self.patience_s = patience_s
        if played:
            context.add_init_script(path=DIRECTOR)
        self.page = context.new_page()
        self.page.set_default_timeout(1000 * patience_s)

    # ---- getting there

    def open(self, path: str = "/device/", *, before: str = "") -> None:
        """Load a page of the site. `before` is JavaScript that runs ahead of the page's own, from now on."""
        if before:
            self.page.add_init_script(before)
        self.page.goto("about:blank")  # so that another fragment is another load
        self.page.goto(f"{self.address}{path}")

    # ---- doing

    def tap(self, selector: str) -> None:
        self.page.locator(selector).click()

    def type(self, selector: str, text: str) -> None:
        self.page.locator(selector).fill(text)

    def js(self, expression: str, argument: object = None) -> Any:
        return self.page.evaluate(expression, argument)

    def become(self, **changes: object) -> None:
        """The worker's state, from now on."""
        self.js("(changes) => director.become(changes)", changes)

    def answers(self, **answers: list[dict[str, Any]]) -> None:
        """What the worker answers to messages of the page, by their type."""
        self.js("(answers) => Object.assign(director.answers, answers)", answers)

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
        return " ".join(self.page.locator(selector).inner_text().split())

    def until_screen(self, name: str) -> None:
        self.until_visible(f"[data-screen={name}]")

    def until_visible(self, selector: str) -> None:
        expect(self.page.locator(selector)).to_be_visible(timeout=1000 * self.patience_s)

    def until_text(self, words: str, selector: str = "body") -> None:
        """Words that are there to read: what is hidden has its text already."""
        self.until_visible(selector)
        place = expect(self.page.locator(selector))
        place.to_contain_text(words, use_inner_text=True, timeout=1000 * self.patience_s)

    def wait_for(self, expression: str) -> None:
        """As Playwright's own `wait_for_function` evaluates anew, which the site's policy stops."""
        self.wait(lambda: self.js(f"Boolean({expression})"), expression)

    def wait(self, true: Callable[[], object], what: str) -> None:
        deadline = time.monotonic() + self.patience_s
        while not true():
            if time.monotonic() > deadline:
                raise AssertionError(f"waited in vain for {what}; there is: {self.text()}")
            time.sleep(LOOK_S)
