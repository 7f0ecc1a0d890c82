"""One browser for the worker's modules, on a page that has them loaded."""

import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import STATIC
from tests.chromium import WEBGPU_FLAGS, Chromium, ChromiumMissing, browser
from tests.phone.worker.urls import SELF_TEST_FOLDER
from tests.static_site import static_site
from worker_protocol.self_test import self_test_open

HERE = Path(__file__).parent
PATIENCE_S = 120  # a bound on hanging, not on slowness


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    try:
        with browser(tmp_path_factory.mktemp("profile"), flags=WEBGPU_FLAGS) as chromium:
            yield chromium
    except ChromiumMissing as missing:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(str(missing))


@pytest.fixture(scope="session")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where the worker's files, the self-test and the tests' pages are served, which may call any other address."""
    trial = tmp_path_factory.mktemp("trial")
    (trial / "self-test").mkdir()
    made = self_test_open(SELF_TEST_FOLDER)
    (trial / "self-test.json").write_bytes(made.manifest)
    for sha256, data in made.files.items():
        (trial / "self-test" / sha256).write_bytes(data)
    policy = "default-src 'self'; connect-src *"
    folders = {"/static/": STATIC, "/phone/": HERE, "/device/": trial}
    with static_site(folders, policy=policy) as address:
        yield address


class Harness:
    """A page with the functions of harness.js or night.js, each test's from new."""

    def __init__(self, chromium: Chromium, name: str) -> None:
        self.chromium = chromium
        self._name = name

    def visit(self, address: str) -> None:
        self.chromium.navigate(f"{address}/phone/{self._name}.html")

    def call(self, function: str, *arguments: Any) -> Any:
        listed = ", ".join(json.dumps(argument) for argument in arguments)
        return self.chromium.evaluate(f"{self._name}.{function}({listed})", timeout_s=120)


@pytest.fixture(scope="module")
def page(chromium: Chromium, address: str) -> Harness:
    """The page with the worker's modules."""
    harness = Harness(chromium, "harness")
    harness.visit(address)
    return harness


class Night(Harness):
    """A page that starts workers as the phone app does."""

    def start(self, name: str = "worker") -> None:
        self.call("open", name)
        self.tell({"type": "start"}, name)

    def tell(self, message: dict[str, Any], name: str = "worker") -> None:
        self.call("tell", name, message)

    def state(self, name: str = "worker") -> dict[str, Any]:
        """The worker's last word; of no phase before its first."""
        return dict(self.call("last", name) or {"phase": None, "leasesDone": 0})

    def answer(
        self, kind: str, condition: Callable[[dict[str, Any]], Any] = bool, name: str = "worker"
    ) -> dict[str, Any]:
        """The first message of a kind that meets the condition."""
        deadline = time.monotonic() + PATIENCE_S
        while not (found := [told for told in self.call("told", name, kind) if condition(told)]):
            assert time.monotonic() < deadline, (self.state(name), self.call("failures"))
            time.sleep(0.05)
        return dict(found[0])

    def wait_until(self, condition: Callable[[dict[str, Any]], Any], name: str = "worker") -> dict[str, Any]:
        """The first state seen that meets the condition."""
        deadline = time.monotonic() + PATIENCE_S
        while not condition(state := self.state(name)):
            assert time.monotonic() < deadline, (state, self.call("failures"))
            time.sleep(0.05)
        return state


@pytest.fixture
def night(chromium: Chromium) -> Iterator[Night]:
    yield Night(chromium, "night")
    chromium.navigate("about:blank")  # which ends its workers
