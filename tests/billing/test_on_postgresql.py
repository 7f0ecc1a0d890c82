"""The ledger's tests again, on PostgreSQL."""

from pathlib import Path

import pytest

from tests.services import run_on_postgresql

# What needs no second database, or tells too long a story for one.
ELSEWHERE = ("another_stripe", "api", "crash", "on_postgresql", "operators", "pages", "programs", "random")


@pytest.mark.timeout(700)
@pytest.mark.services("postgresql")
def test_the_ledger_holds_on_postgresql_too():
    files = sorted(Path(__file__).parent.glob("test_*.py"))
    run_on_postgresql(*(str(file) for file in files if not any(word in file.name for word in ELSEWHERE)))
