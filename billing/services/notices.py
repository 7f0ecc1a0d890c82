"""E-mails about money that wait to be sent. One may be sent twice after a crash, and is never forgotten."""

from datetime import datetime

from django.core.mail import send_mail

from billing.models import Notice


def notice_send(*, notice_id: int, now: datetime) -> None:
    notice = Notice.objects.select_related("user").get(pk=notice_id)
    if notice.next_try_at is None:
        return
    send_mail(f"Nightshift: {notice.subject}", notice.body, None, [notice.user.email])
    Notice.objects.filter(pk=notice.pk).update(next_try_at=None)
