"""A real browser: Debian's Chromium, headless, driven over the DevTools protocol."""

import json
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

from websockets.sync.client import ClientConnection, connect

FLAGS = [
    "--headless=new", "--no-sandbox", "--disable-quic", "--no-first-run", "--hide-scrollbars",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--remote-debugging-port=0",
]  # fmt: skip
WEBGPU_FLAGS = ["--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader"]
"""WebGPU on the processor, as the machine may have no GPU. Unsafe means: with timestamps, among others."""

# Bounds on hanging, not on slowness.
START_S = 60
ANSWER_S = 120


class ChromiumMissing(Exception):
    """No Chromium is installed."""


class PageError(Exception):
    """JavaScript in the page threw an error."""


class Chromium:
    """A page of a browser. `events` are what the browser told without being asked."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._numbers = count(1)
        self.events: list[dict[str, Any]] = []
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, *, timeout_s: float = ANSWER_S, **params: Any) -> Any:
        number = next(self._numbers)
        self._socket.send(json.dumps({"id": number, "method": method, "params": params}))
        while True:
            message = json.loads(self._socket.recv(timeout=timeout_s))
            if message.get("id") == number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]
            self.events.append(message)

    def navigate(self, url: str) -> None:
        self.load("Page.navigate", url=url)

    def load(self, method: str, **params: Any) -> None:
        """Do what makes the page load anew, and wait until it has."""
        before = self._count("Page.loadEventFired")
        self.call(method, **params)
        while self._count("Page.loadEventFired") == before:
            self.events.append(json.loads(self._socket.recv(timeout=ANSWER_S)))

    def evaluate(self, expression: str, *, timeout_s: float = ANSWER_S) -> Any:
        """The JSON value of a JavaScript expression, awaited if it is a promise."""
        answer = self.call(
            "Runtime.evaluate",
            expression=expression,
            awaitPromise=True,
            returnByValue=True,
            timeout_s=timeout_s,
        )
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            raise PageError(details.get("exception", {}).get("description", details["text"]))
        return answer["result"].get("value")

    def _count(self, event: str) -> int:
        return sum(message.get("method") == event for message in self.events)


@contextmanager
def browser(profile: Path, *, flags: Sequence[str]) -> Iterator[Chromium]:
    """A browser of its own, with an empty page. Raises `ChromiumMissing`."""
    command = [chromium_program(), *FLAGS, *flags, f"--user-data-dir={profile}", "about:blank"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            with connect(_page_socket(profile), max_size=None) as socket:
                yield Chromium(socket)
        finally:
            process.terminate()


def chromium_program() -> str:
    names = ("chromium", "chromium-browser", "google-chrome")
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        raise ChromiumMissing("This needs Chromium: sh tests/install_programs.sh says how to get it.")
    return found


def _page_socket(profile: Path) -> str:
    """The DevTools address of the browser's first page, once it has one."""
    import httpx

    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        try:
            port = (profile / "DevToolsActivePort").read_text().split("\n")[0]
            targets = httpx.get(f"http://127.0.0.1:{port}/json/list").json()
            return str(next(target for target in targets if target["type"] == "page")["webSocketDebuggerUrl"])
        except (OSError, httpx.HTTPError, StopIteration):
            time.sleep(0.1)
    raise TimeoutError(f"Chromium did not start within {START_S} s")
