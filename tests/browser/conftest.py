"""One browser for all of these tests, on a page that has the runtime's modules loaded."""

import json
import os
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.browser.shards import CASES, Shard, shard
from tests.chromium import WEBGPU_FLAGS, Chromium, ChromiumMissing, browser
from tests.static_site import static_site

HERE = Path(__file__).parent
STATIC = HERE.parents[1] / "worker_protocol" / "static"


class Page:
    """The page, and the folder that it fetches its files from."""

    def __init__(self, chromium: Chromium, files: Path) -> None:
        self._chromium = chromium
        self.files = files

    def call(self, function: str, *arguments: Any) -> Any:
        """What a function of harness.js returns."""
        listed = ", ".join(json.dumps(argument) for argument in arguments)
        return self._chromium.evaluate(f"harness.{function}({listed})", timeout_s=120)


@pytest.fixture(scope="session")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    files, profile = (tmp_path_factory.mktemp(name) for name in ("files", "profile"))
    try:
        with (
            static_site({"/static/": STATIC, "/files/": files, "/": HERE}) as address,
            browser(profile, flags=WEBGPU_FLAGS) as chromium,
        ):
            chromium.navigate(f"{address}/page.html")
            yield Page(chromium, files)
    except ChromiumMissing as missing:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(str(missing))


@pytest.fixture(scope="session")
def shard_of(page: Page) -> Callable[[str], Shard]:
    """Shards by their case's name; each is captured and compiled once."""
    return cache(lambda name: shard(name, page.files))


@pytest.fixture
def mlp(shard_of: Callable[[str], Shard]) -> Shard:
    return shard_of("mlp")


@pytest.fixture(params=CASES)
def any_shard(request: pytest.FixtureRequest, shard_of: Callable[[str], Shard]) -> Shard:
    return shard_of(request.param)
