"""Wake-ups over the channel layer: hints that there is something to read in the database.

A wake-up carries nothing and may be lost; whoever is woken also looks at the database on a timer. So nothing
depends on delivery, only on speed.
"""

import logging

from asgiref.sync import async_to_sync
from channels.exceptions import ChannelFull
from channels.layers import BaseChannelLayer, get_channel_layer
from django.core.exceptions import ImproperlyConfigured
from django.db import transaction

log = logging.getLogger(__name__)

DISPATCHER = "nightshift.dispatcher"
SETTLER = "nightshift.settler"


def channel_layer() -> BaseChannelLayer:
    """The configured channel layer; the settings always configure one."""
    layer = get_channel_layer()
    if layer is None:
        raise ImproperlyConfigured("CHANNEL_LAYERS has no default.")
    return layer


def wake_on_commit(channel: str) -> None:
    """Wake the reader on `channel` once the current transaction has committed."""
    transaction.on_commit(lambda: wake(channel))


def wake(channel: str) -> None:
    """Never fails: what the caller has done is committed, and the reader will see it without being woken."""
    try:
        async_to_sync(channel_layer().send)(channel, {"type": "wake"})
    except ChannelFull:
        log.debug("wake-up for %s dropped: its reader is busy and will look anyway", channel)
    except Exception as error:
        log.warning("wake-up for %s lost: %s", channel, error)
