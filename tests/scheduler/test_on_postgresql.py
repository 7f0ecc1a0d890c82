"""The scheduler's rows again, on PostgreSQL."""

from pathlib import Path

import pytest

from tests.services import run_on_postgresql

HERE = Path(__file__).parent


@pytest.mark.timeout(700)
@pytest.mark.services("postgresql")
def test_rows_equal_memory_and_turns_are_atomic_on_postgresql_too():
    run_on_postgresql(str(HERE / "test_store.py"), str(HERE / "test_engine.py"))
