"""What a freeze of a wallet means for its person's jobs: they pause, and go on when it is lifted.

Takes up billing's news. Each piece has its effect in the transaction that deletes it, and the effect is what the
wallet's standing is by then, behind a lock of the person: so whichever of two readers comes last, and however often
a wallet is frozen and freed, the jobs end up as the wallet is.
"""

import logging
from datetime import datetime

from django.conf import settings
from django.db import transaction

from accounts.models import User
from accounts.services import user_lock
from billing.models import BillingNews
from billing.models.notices import SUBJECT_MAX_CHARS
from billing.selectors import wallet_frozen_because
from billing.services import notice_write
from common.clock import utc_now
from marketplace.models import Job
from scheduler.services import run_pause, run_resume

log = logging.getLogger(__name__)

KINDS = ("wallet_frozen", "wallet_unfrozen")
OPERATORS_TOLD_MAX = 50


def freezes_pending() -> int:
    """Handle news of freezes in the order it came; returns how many pieces took effect.

    One that fails stays for the next time, and so do the later ones of the same person.
    """
    handled = 0
    stuck: set[int] = set()
    for news in list(BillingNews.objects.filter(kind__in=KINDS).order_by("id")):
        user_id = news.payload["user_id"]
        if user_id in stuck:
            continue
        try:
            handled += _take_up(news, user_id)
        except Exception:
            log.exception("news %s of user %s failed; it will be tried again", news.kind, user_id)
            stuck.add(user_id)
    return handled


@transaction.atomic
def _take_up(news: BillingNews, user_id: int) -> bool:
    user = User.objects.get(pk=user_id)
    user_lock(user)
    deleted, _ = BillingNews.objects.filter(pk=news.pk).delete()
    if not deleted:  # another reader was quicker
        return False
    because = wallet_frozen_because(user)
    jobs = list(Job.objects.filter(owner=user, state=Job.State.RUNNING).exclude(run_id=None))
    for job in jobs:
        change = run_pause if because else run_resume
        change(run_id=job.run_id)  # type: ignore[arg-type]  # those without a run are left out
    _tell(user, because, jobs, utc_now())
    return True


def _tell(user: User, because: str, jobs: list[Job], now: datetime) -> None:
    """By e-mail, to the person and the operators: written with the effect, sent by billing soon after."""
    state = "frozen" if because else "free again"
    effect = "paused" if because else "going on"
    names = "".join(f"\n  {job.name}: {settings.PUBLIC_URL}/jobs/{job.pk}/" for job in jobs) or " none"
    why = f"It is frozen: {because}\n" if because else ""
    later = (
        "\nDevices finish what they have begun, and results that are accepted are paid from what is set aside. "
        "The jobs go on when the freeze is lifted. Questions: write to the operator of the site.\n"
        if because
        else ""
    )
    operators = User.objects.filter(is_staff=True, is_active=True).exclude(pk=user.pk)
    for reader in (user, *operators.order_by("pk")[:OPERATORS_TOLD_MAX]):
        whose = "Your wallet" if reader == user else f"The wallet of {user.email}"
        told = f"{whose} is {state}"
        # An address may be longer than a subject; the body has it whole.
        subject = told if len(told) <= SUBJECT_MAX_CHARS else f"A wallet is {state}"
        notice_write(
            user=reader, subject=subject, body=f"{told}.\n{why}Jobs {effect}:{names}\n{later}", now=now
        )
