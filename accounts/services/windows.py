"""Idle windows are replaced as a whole, so that nobody ever sees half a change."""

from collections.abc import Sequence
from uuid import UUID

from django.db import transaction

from accounts.domain.windows import WEEKDAYS, Window
from accounts.errors import InvalidWindows
from accounts.models import IdleWindow, User
from accounts.selectors import device_of, devices_of
from accounts.services.news import publish_device_news

WindowSpec = Window
MAX_WINDOWS = 50


@transaction.atomic
def idle_windows_replace(*, owner: User, device_id: UUID | None, windows: Sequence[WindowSpec]) -> None:
    """Give a device (or, with None, all devices without windows of their own) these windows and no others.

    No windows for a device: the common ones apply to it again. Raises InvalidWindows or DeviceNotFound.
    """
    _check(windows)
    User.objects.select_for_update().get(id=owner.id)  # one replacement at a time
    device = None if device_id is None else device_of(owner, device_id)
    IdleWindow.objects.filter(owner=owner, device=device).delete()
    IdleWindow.objects.bulk_create(
        IdleWindow(owner=owner, device=device, weekday=w.weekday, starts=w.starts, ends=w.ends)
        for w in windows
    )
    publish_device_news("changed", [d.id for d in devices_of(owner) if device in (None, d)])


def _check(windows: Sequence[WindowSpec]) -> None:
    if len(windows) > MAX_WINDOWS:
        raise InvalidWindows(f"Give at most {MAX_WINDOWS} idle windows.", field="windows")
    seen = set()
    for window in windows:
        if not 0 <= window.weekday <= 6:
            raise InvalidWindows("A window's weekday is 0 (Monday) to 6 (Sunday).", field="windows")
        if any(at.second or at.microsecond or at.tzinfo for at in (window.starts, window.ends)):
            raise InvalidWindows("A window's times are whole minutes such as 22:00.", field="windows")
        if (window.weekday, window.starts) in seen:
            day = WEEKDAYS[window.weekday]
            raise InvalidWindows(
                f"Two windows start on {day} at {window.starts:%H:%M}; keep one.", field="windows"
            )
        seen.add((window.weekday, window.starts))
