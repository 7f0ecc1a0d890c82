"""A process that dies: at any statement it sends to the database, before or after any request to Stripe.

No hook in the code is needed, and no step can be forgotten: a test tells its story with new people again and again,
killed at its first such moment, then at its second, until it gets through. What the dead process had not committed is
gone, as it would be; what it had asked of Stripe was done.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from django.db import connection

from billing.gateway.client import StripeGateway


class Killed(BaseException):
    """No `except Exception` survives a SIGKILL; so this is none."""


@dataclass
class Countdown:
    left: int

    def tick(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise Killed


def dies_at(moment: int, story: Callable[[], object], monkeypatch: Any) -> bool:
    """Run the story and kill it at that moment; False if it got through before."""
    try:
        with _dying_at(moment, monkeypatch):
            story()
    except Killed:
        return True
    return False


@contextmanager
def _dying_at(moment: int, monkeypatch: Any) -> Iterator[None]:
    countdown = Countdown(moment)
    send = StripeGateway.send

    def execute(run: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        countdown.tick()
        return run(sql, params, many, context)

    def send_and_die(self: StripeGateway, *args: Any, **kwargs: Any) -> Any:
        countdown.tick()
        answer = send(self, *args, **kwargs)
        countdown.tick()
        return answer

    with monkeypatch.context() as patch, connection.execute_wrapper(execute):
        patch.setattr(StripeGateway, "send", send_and_die)
        yield
