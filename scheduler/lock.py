"""Which process dispatches: a row claimed by a conditional update and renewed in every batch's transaction.

A holder that stalls past `LOCK_TTL` loses the row to another process; its next batch then fails to renew, and the
whole batch is rolled back. So two processes never both store decisions.
"""

from datetime import datetime, timedelta

from django.db.models import Q

from scheduler.errors import LockLost
from scheduler.models import DispatcherLock

LOCK_TTL = timedelta(seconds=10)
_NAME = "dispatcher"


def lock_claim(*, holder: str, now: datetime) -> bool:
    """Take the lock if it is free, expired or ours."""
    DispatcherLock.objects.get_or_create(name=_NAME, defaults={"holder": "", "expires_at": now})
    free = Q(expires_at__lte=now) | Q(holder=holder)
    claimed = DispatcherLock.objects.filter(free, name=_NAME).update(holder=holder, expires_at=now + LOCK_TTL)
    return claimed == 1


def lock_is_held(*, now: datetime) -> bool:
    """Whether some process dispatches."""
    return DispatcherLock.objects.filter(name=_NAME, expires_at__gt=now).exists()


def lock_renew(*, holder: str, now: datetime) -> None:
    """Go on holding the lock, within the batch's transaction; raises LockLost if another process took it."""
    renewed = DispatcherLock.objects.filter(name=_NAME, holder=holder).update(expires_at=now + LOCK_TTL)
    if renewed != 1:
        raise LockLost("Another process has taken over dispatching; this one stands by.")


def lock_release(*, holder: str, now: datetime) -> None:
    """Let another process take over at once."""
    DispatcherLock.objects.filter(name=_NAME, holder=holder).update(holder="", expires_at=now)
