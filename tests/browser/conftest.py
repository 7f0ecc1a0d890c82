"""A page that has the runtime's modules loaded, for all tests of a file."""

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import playwright.sync_api
import pytest

from tests.browser.shards import CASES, Shard, shard
from tests.static_site import static_site

HERE = Path(__file__).parent
STATIC = HERE.parents[1] / "worker_protocol" / "static"


class Page:
    """The page, and the folder that it fetches its files from."""

    def __init__(self, page: playwright.sync_api.Page, files: Path) -> None:
        self._page = page
        self.files = files

    def call(self, function: str, *arguments: Any) -> Any:
        """What a function of harness.js returns."""
        return self._page.evaluate("([name, given]) => harness[name](...given)", [function, arguments])


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("files")


@pytest.fixture(scope="module")
def page(chromium: playwright.sync_api.Browser, files: Path) -> Iterator[Page]:
    with (
        static_site({"/static/": STATIC, "/files/": files, "/": HERE}) as address,
        chromium.new_context() as context,
    ):
        opened = context.new_page()
        opened.goto(f"{address}/page.html")
        yield Page(opened, files)


@pytest.fixture(scope="session")
def shard_of(files: Path) -> Callable[[str], Shard]:
    """Shards by their case's name; each is captured and compiled once."""
    return cache(lambda name: shard(name, files))


@pytest.fixture
def mlp(shard_of: Callable[[str], Shard]) -> Shard:
    return shard_of("mlp")


@pytest.fixture(params=CASES)
def any_shard(request: pytest.FixtureRequest, shard_of: Callable[[str], Shard]) -> Shard:
    return shard_of(request.param)
