"""The ledger's tests again, on PostgreSQL."""

from pathlib import Path

import pytest

from tests.services import run_on_postgresql


@pytest.mark.services("postgresql")
def test_the_ledger_holds_on_postgresql_too():
    # Without the deaths, whose every moment takes a story of its own.
    files = sorted(Path(__file__).parent.glob("test_*.py"))
    run_on_postgresql(*(str(file) for file in files if "crash" not in file.name))
