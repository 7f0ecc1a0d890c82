"""E-mails about money: written in the transaction of what they tell, and sent soon after by whoever comes first.

One may be sent twice, after a crash in the moment between sending it and writing that down, and is never forgotten.
"""

import logging
from datetime import datetime

from django.core.mail import send_mail

from accounts.models import User
from billing.domain.backoff import next_try
from billing.models import Notice

log = logging.getLogger(__name__)


def notice_write(*, user: User, subject: str, body: str, now: datetime) -> Notice:
    """Put an e-mail to this person on its way. Call it in the transaction of what it is about."""
    return Notice.objects.create(user=user, subject=subject, body=body, created_at=now, next_try_at=now)


def notice_send(*, notice_id: int, now: datetime) -> None:
    """Send it, unless that is done, or somebody else is at it: a try is claimed before it is made."""
    notice = Notice.objects.select_related("user").get(pk=notice_id)
    if notice.next_try_at is None or notice.next_try_at > now:
        return
    tries = notice.tries + 1
    again_at = next_try(tries=tries, now=now)
    mine = Notice.objects.filter(pk=notice.pk, tries=notice.tries, next_try_at=notice.next_try_at)
    if not mine.update(tries=tries, next_try_at=again_at):
        return
    try:
        send_mail(f"Nightshift: {notice.subject}", notice.body, None, [notice.user.email])
    except OSError as problem:  # what the mail server says, too: SMTPException is one
        then = f"it is tried again at {again_at}" if again_at else "it is given up"
        log.warning("e-mail %s was not sent (%s); %s", notice.pk, type(problem).__name__, then)
        return
    Notice.objects.filter(pk=notice.pk).update(next_try_at=None)
