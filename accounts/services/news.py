"""Tells the scheduler that a device may have to stop or start, in the transaction that makes it so."""

from collections.abc import Iterable
from typing import Literal
from uuid import UUID

from accounts.models import DeviceNews
from common.wake import DISPATCHER, wake_on_commit


def publish_device_news(kind: Literal["changed", "removed"], device_ids: Iterable[UUID]) -> None:
    for device_id in device_ids:
        DeviceNews.publish(kind, device_id=str(device_id))
    wake_on_commit(DISPATCHER)
