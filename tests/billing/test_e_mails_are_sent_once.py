"""E-mails about money wait in a row until they are sent, and are tried again when the mail server is down."""

from datetime import timedelta

import pytest
from django.core import mail

from billing.domain.backoff import MAX_TRIES
from billing.due import payments_advance
from billing.models import Notice
from billing.services import notice_write
from billing.services.notices import notice_send
from common.clock import utc_now
from tests.billing.cast import person

pytestmark = pytest.mark.django_db


@pytest.fixture
def notice() -> Notice:
    return notice_write(user=person("bea"), subject="Your wallet is frozen", body="Why.", now=utc_now())


def test_one_is_sent_once_also_on_a_site_without_stripe(notice, settings):
    settings.STRIPE_SECRET_KEY = ""
    for hours in (0, 1, 48):
        payments_advance(now=utc_now() + timedelta(hours=hours))
    assert [(letter.subject, letter.to) for letter in mail.outbox] == [
        ("Nightshift: Your wallet is frozen", ["bea@example.org"])
    ]


def test_whoever_comes_while_another_sends_it_sends_nothing(notice, monkeypatch):
    sent = []

    def sends(*_args: object) -> None:
        sent.append(1)
        notice_send(notice_id=notice.pk, now=utc_now())

    monkeypatch.setattr("billing.services.notices.send_mail", sends)
    notice_send(notice_id=notice.pk, now=utc_now())
    assert sent == [1]


def test_a_mail_server_that_is_down_is_asked_again_later_and_not_for_ever(notice, settings, unused_tcp_port):
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", unused_tcp_port
    now = utc_now()
    notice_send(notice_id=notice.pk, now=now)
    notice.refresh_from_db()
    assert notice.tries == 1
    assert notice.next_try_at is not None
    assert notice.next_try_at > now
    for days in range(1, 2 * MAX_TRIES):
        notice_send(notice_id=notice.pk, now=now + timedelta(days=days))
    notice.refresh_from_db()
    assert (notice.tries, notice.next_try_at) == (MAX_TRIES, None)
