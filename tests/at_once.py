"""Running calls at the same moment in threads of their own, as concurrent requests do."""

import threading
from collections.abc import Callable
from typing import Any

from django.db import connection

JOIN_TIMEOUT_S = 60


def at_once(*calls: Callable[[], Any]) -> list[Exception]:
    """Start all calls together, wait for them, and return what they raised. The test needs real transactions."""
    start = threading.Barrier(len(calls))
    raised: list[Exception] = []

    def run(call: Callable[[], Any]) -> None:
        try:
            start.wait(timeout=JOIN_TIMEOUT_S)
            call()
        except Exception as error:
            raised.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=(call,), daemon=True) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=JOIN_TIMEOUT_S)
    assert not any(thread.is_alive() for thread in threads), "a call hangs"
    return raised
