"""The blob store's tests again, on PostgreSQL: there the row locks are what keeps puts and collections apart."""

from pathlib import Path

import pytest

from tests.services import run_on_postgresql


@pytest.mark.timeout(700)
@pytest.mark.services("postgresql")
def test_the_blob_store_holds_on_postgresql_too():
    folder = Path(__file__).parent
    run_on_postgresql(*(str(folder / name) for name in ("test_put_and_hold.py", "test_collection.py")))
