"""Every typed error has a code of its own, a sentence's worth of shape, and one HTTP status."""

import importlib
from collections import defaultdict

import pytest

from common.errors import NightshiftError
from common.http import STATUS_BY_CODE
from worker_protocol.errors import WorkerProtocolError

APPS = ["accounts", "billing", "blobs", "scheduler", "worker_protocol", "marketplace"]


def leaves(cls: type[NightshiftError]) -> list[type[NightshiftError]]:
    below = cls.__subclasses__()
    return [leaf for sub in below for leaf in leaves(sub)] if below else [cls]


@pytest.fixture(scope="module", autouse=True)
def _all_errors_imported():
    for app in APPS:
        importlib.import_module(f"{app}.errors")


def raised_classes() -> list[type[NightshiftError]]:
    return [c for c in leaves(NightshiftError) if c.__module__.split(".")[0] in APPS]


def test_every_code_has_one_http_status():
    """But for those of the socket, which has close codes, and of a device's terminal."""
    over_http = [c for c in raised_classes() if not issubclass(c, WorkerProtocolError)]
    missing = sorted({c.code for c in over_http} - set(STATUS_BY_CODE))
    assert missing == [], "add these to common.http.STATUS_BY_CODE"


def test_no_mapping_is_left_over():
    known = {c.code for c in raised_classes()} | {"internal"}
    assert sorted(set(STATUS_BY_CODE) - known) == []


def test_a_code_belongs_to_one_error():
    owners = defaultdict(set)
    for c in raised_classes():
        owners[c.code].add(c.__qualname__)
    assert {code: names for code, names in owners.items() if len(names) > 1} == {}


def test_every_app_has_one_base_that_shows_its_tree():
    for app in APPS:
        module = importlib.import_module(f"{app}.errors")
        bases = [c for c in NightshiftError.__subclasses__() if c.__module__ == module.__name__]
        assert len(bases) == 1, app
        assert bases[0].__name__ in (module.__doc__ or ""), f"{app}.errors' docstring draws the tree"
