"""A freeze of the wallet pauses its person's jobs: no new work, what was accepted is paid, and later they go on."""

from collections import Counter
from datetime import timedelta
from itertools import count

import pytest
from django.core import mail
from django.test import Client

from accounts.models import User
from billing.due import payments_advance
from billing.errors import WalletFrozen
from billing.models import BillingNews
from billing.selectors import earnings_balance, ledger_differences
from billing.services import wallet_freeze, wallet_unfreeze
from blobs.models import BlobHold
from common.clock import utc_now
from marketplace.jobs import pausing
from marketplace.jobs.pausing import freezes_pending
from marketplace.jobs.services import job_cancel, job_confirm
from marketplace.jobs.settling import settle_pending
from marketplace.models import Job
from marketplace.selectors import job_view
from scheduler.engine import Engine
from scheduler.models import Inbox, Run
from scheduler.services import run_pause
from tests.billing.crashing import dies_at
from tests.marketplace.cast import buyer, person, priced_job, quoted_job, round_closes, run_ends, run_of
from tests.marketplace.pages.reading import text_of

pytestmark = pytest.mark.django_db
WHY = "a payment into it has been disputed with its bank."


def frozen(user: User) -> None:
    wallet_freeze(user=user, because=WHY)
    freezes_pending()


def freed(user: User) -> None:
    wallet_unfreeze(user=user, operator=User.objects.get(is_staff=True), reason="the bank agreed.")
    freezes_pending()


def dispatched() -> None:
    """The dispatcher takes up what it was asked."""
    engine = Engine(holder="a test")
    engine.start()
    while mail := engine.collect():
        engine.turn(mail)
    engine.stop()


def test_running_jobs_pause_and_those_of_others_go_on():
    bea, bob = buyer(), buyer("bob")
    hers, his = priced_job(bea), priced_job(bob)
    frozen(bea)
    dispatched()
    assert (run_of(hers).state, run_of(his).state) == (Run.State.PAUSED, Run.State.ACTIVE)
    assert not BillingNews.objects.exists()
    freed(bea)
    dispatched()
    assert run_of(hers).state == Run.State.ACTIVE


def test_accepted_work_of_a_paused_job_is_paid_from_the_hold_and_it_may_end():
    bea, ann = buyer(), person("ann")
    job = priced_job(bea)
    frozen(bea)
    dispatched()
    round_closes(job, {ann: 100})
    assert settle_pending() == 1
    assert earnings_balance(ann) == 80
    run_ends(job)
    settle_pending()
    job.refresh_from_db()
    assert job.state == Job.State.FINISHED
    assert ledger_differences() == []


def test_a_paused_job_can_be_cancelled():
    bea = buyer()
    job = priced_job(bea)
    frozen(bea)
    job_cancel(owner=bea, job_id=job.pk)
    dispatched()
    assert run_of(job).state == Run.State.CANCELLED


def test_a_quote_cannot_be_confirmed_and_nothing_is_prepared_for_it():
    bea = buyer()
    job = quoted_job(bea)
    held = set(BlobHold.objects.filter(holder=job.reference).values_list("blob_id", flat=True))
    frozen(bea)
    with pytest.raises(WalletFrozen, match="Your wallet is frozen: a payment"):
        job_confirm(owner=bea, job_id=job.pk)
    job.refresh_from_db()
    assert job.state == Job.State.QUOTED
    assert held == set(BlobHold.objects.filter(holder=job.reference).values_list("blob_id", flat=True))
    view = job_view(job)
    assert not view.can_confirm
    assert view.waiting is not None
    assert "Cannot be confirmed: your wallet is frozen." in view.waiting


def test_however_often_it_is_frozen_and_freed_meanwhile_the_last_state_counts():
    bea = buyer()
    job = priced_job(bea)
    operator = User.objects.get(is_staff=True)
    for _ in range(2):
        wallet_freeze(user=bea, because=WHY)
        wallet_unfreeze(user=bea, operator=operator, reason="no.")
    wallet_freeze(user=bea, because=WHY)
    assert freezes_pending() == 5
    dispatched()
    assert run_of(job).state == Run.State.PAUSED
    assert freezes_pending() == 0


def test_news_that_fails_stays_and_holds_up_nobody_else(monkeypatch):
    bea, bob = buyer(), buyer("bob")
    hers, his = priced_job(bea), priced_job(bob)
    pause = run_pause

    def fails_for_her(*, run_id):
        if run_id == hers.run_id:
            raise RuntimeError("the disk is full")
        pause(run_id=run_id)

    monkeypatch.setattr(pausing, "run_pause", fails_for_her)
    for user in (bea, bob):
        wallet_freeze(user=user, because=WHY)
    assert freezes_pending() == 1
    dispatched()
    assert (run_of(hers).state, run_of(his).state) == (Run.State.ACTIVE, Run.State.PAUSED)
    monkeypatch.undo()
    assert freezes_pending() == 1
    assert Inbox.objects.filter(kind="RunPaused", payload__run_id=str(hers.run_id)).count() == 1


def test_the_person_and_the_operators_are_told():
    bea = buyer()
    priced_job(bea)
    frozen(bea)
    assert mail.outbox == []  # written with the pause, and sent by whoever comes next
    payments_advance(now=utc_now())
    assert {to for letter in mail.outbox for to in letter.to} == {"bea@example.org", "olive@example.org"}
    hers = next(letter for letter in mail.outbox if letter.to == ["bea@example.org"])
    assert hers.subject == "Nightshift: Your wallet is frozen"
    assert WHY in hers.body
    assert "two clouds" in hers.body
    freed(bea)
    payments_advance(now=utc_now())
    assert mail.outbox[-1].subject.endswith("is free again")


def test_an_operator_whose_own_wallet_is_frozen_is_told_once():
    olive = User.objects.create_user("olive@example.org", is_staff=True)
    frozen(olive)
    payments_advance(now=utc_now())
    assert [letter.subject for letter in mail.outbox] == ["Nightshift: Your wallet is frozen"]


@pytest.mark.django_db(transaction=True)
@pytest.mark.slow
def test_a_crash_anywhere_loses_no_word_of_a_freeze_and_doubles_none_without_need(monkeypatch):
    for moment in count():
        bea, told = buyer(f"bea-{moment}"), len(mail.outbox)
        job = priced_job(bea)

        def frozen_and_told(bea=bea) -> None:
            wallet_freeze(user=bea, because=WHY)
            freezes_pending()
            payments_advance(now=utc_now())

        died = dies_at(moment, frozen_and_told, monkeypatch)
        frozen_and_told()
        payments_advance(now=utc_now() + timedelta(hours=1))
        readers = Counter(letter.to[0] for letter in mail.outbox[told:])
        assert set(readers) == {bea.email, "olive@example.org"}
        assert readers.total() <= 3  # of the two, one may have been sent and not written down
        assert Inbox.objects.filter(kind="RunPaused", payload__run_id=str(run_of(job).pk)).count() == 1
        if not died:
            assert readers.total() == 2
            break
    assert moment > 20


def test_the_jobs_page_says_why_and_what_to_do():
    bea = buyer()
    job = priced_job(bea)
    frozen(bea)
    dispatched()
    client = Client(HTTP_ACCEPT="text/html")
    client.force_login(bea)
    text = text_of(client.get(f"/jobs/{job.pk}/"))
    assert "Paused, because your wallet is frozen." in text
    assert "Write to the operator" in text
    assert "paid from what is set aside" in text
    assert "Your wallet is frozen" in text_of(client.get("/wallet/"))
    answer = client.get(f"/api/jobs/{job.pk}/", headers={"accept": "application/json"})
    assert answer.json()["state_words"] == "paused"
