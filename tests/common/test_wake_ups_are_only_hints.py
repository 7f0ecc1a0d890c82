"""A wake-up may be lost, and whoever sends it does not notice: what it tells of is in the database."""

import logging

import pytest
from channels.exceptions import ChannelFull

from common import wake


class FailingLayer:
    """A channel layer whose server is away, or whose channel is full."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    async def send(self, channel: str, message: dict[str, str]) -> None:
        raise self._error


@pytest.mark.parametrize("error", [ChannelFull(), ConnectionError("redis is away"), TimeoutError()])
def test_a_wake_up_that_cannot_be_sent_fails_nobody(monkeypatch, error):
    monkeypatch.setattr(wake, "channel_layer", lambda: FailingLayer(error))
    wake.wake(wake.DISPATCHER)


def test_one_lost_to_a_failing_channel_layer_is_logged(monkeypatch, caplog):
    monkeypatch.setattr(wake, "channel_layer", lambda: FailingLayer(ConnectionError("redis is away")))
    with caplog.at_level(logging.WARNING):
        wake.wake(wake.SETTLER)
    assert f"wake-up for {wake.SETTLER} lost: redis is away" in caplog.text
