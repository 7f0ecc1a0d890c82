"""The ledger's tests again, on PostgreSQL."""

from pathlib import Path

import pytest

from tests.services import run_on_postgresql


@pytest.mark.services("postgresql")
def test_the_ledger_holds_on_postgresql_too():
    run_on_postgresql(str(Path(__file__).parent))
