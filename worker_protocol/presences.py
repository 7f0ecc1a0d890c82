"""Which devices are connected and what keeps one from work, for people to read; nothing is decided by it.

Kept in Django's cache (in process, or Redis), for it changes often and is worthless once old: an entry that its
socket no longer renews, because the server was killed, goes away by itself.
"""

from collections.abc import Iterable
from uuid import UUID

from django.core.cache import cache

LIFETIME_S = 180  # sockets renew it every minute


async def presence_note(*, device_id: UUID, session_id: str, blocked: str | None) -> None:
    """A device's socket is open; `blocked` is why it may not work now, None if it may."""
    await cache.aset(_key(device_id), [session_id, blocked], LIFETIME_S)


async def presence_forget(*, device_id: UUID, session_id: str) -> None:
    """The socket has closed; unless a newer one of the same device has taken over."""
    noted = await cache.aget(_key(device_id))
    if noted is not None and noted[0] == session_id:
        await cache.adelete(_key(device_id))


def presences(device_ids: Iterable[UUID]) -> dict[UUID, str | None]:
    """What blocks each device that is connected (None: nothing); those that are not are left out."""
    ids = {_key(device_id): device_id for device_id in device_ids}
    return {ids[key]: blocked for key, (_, blocked) in cache.get_many(ids).items()}


def _key(device_id: UUID) -> str:
    return f"presence:{device_id}"
