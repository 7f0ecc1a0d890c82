"""One browser for the worker's modules, on a page that has them loaded."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser.conftest import STATIC, Page
from tests.chromium import WEBGPU_FLAGS, ChromiumMissing, browser
from tests.static_site import static_site

HERE = Path(__file__).parent


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
