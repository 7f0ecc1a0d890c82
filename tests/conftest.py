"""What all tests share: where the servers are, a calm hypothesis, and a ledger that may be emptied between tests."""

import os
import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from django.conf import settings
from django.db import connection
from django.db.backends.base.operations import BaseDatabaseOperations
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings

from billing.guards import APPEND_ONLY_TABLES, guards_put_up, guards_take_down
from marketplace.guards import INVOICE_TABLES
from tests.prices import opening_prices
from tests.services import missing_servers

if TYPE_CHECKING:
    from playwright.sync_api import Browser

# Machines that run tests are slow at times; a test's own timeout is what bounds it.
hypothesis_settings.register_profile(
    "nightshift", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
hypothesis_settings.load_profile("nightshift")

LONG = ("slow", "browser", "services")  # markers of the tests that take longest


def pytest_xdist_auto_num_workers() -> int:
    """One more than there are cores, as tests wait for browsers, servers and disks at times."""
    return (os.cpu_count() or 1) + 1


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long files come first, so that at the end no worker is left alone with one."""
    long = {item.path for item in items if any(map(item.get_closest_marker, LONG))}
    items.sort(key=lambda item: item.path not in long)


def pytest_runtest_setup(item: pytest.Item) -> None:
    marker = item.get_closest_marker("services")
    reason = missing_servers(marker.args) if marker else None
    if reason is None:
        return
    if os.environ.get("CI") == "true":
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


def pytest_unconfigure() -> None:
    """Remove the folder that the test settings made."""
    shutil.rmtree(settings.VAR_DIR, ignore_errors=True)


@pytest.fixture(scope="session", autouse=True)
def _ledger_can_be_emptied() -> Iterator[None]:
    """Take the ledger's guards away for as long as a test with real transactions has its tables emptied."""
    flush = BaseDatabaseOperations.execute_sql_flush

    def flush_unguarded(self: BaseDatabaseOperations, sql_list: Any) -> None:
        tables = (*APPEND_ONLY_TABLES, *INVOICE_TABLES)
        guards_take_down(connection, tables)
        flush(self, sql_list)
        opening_prices()
        guards_put_up(connection, tables)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BaseDatabaseOperations, "execute_sql_flush", flush_unguarded)
        yield


@pytest.fixture(scope="module")
def chromium() -> Iterator["Browser"]:
    """No longer than a module, for the reason told in tests/chromium.py."""
    from tests.chromium import ChromiumMissing, chromium  # here, as most tests do without

    try:
        with chromium() as browser:
            yield browser
    except ChromiumMissing as missing:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(str(missing))
