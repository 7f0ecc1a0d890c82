"""The list of a buyer's jobs, in one query: where each stands, and how good its model is."""

from django.db.models import F, OuterRef, QuerySet, Subquery

from accounts.models import User
from marketplace.models import Job
from marketplace.selectors import jobs_of
from scheduler.models import Round, Run


def job_list(owner: User) -> QuerySet[Job]:
    """Newest first; each with `rounds_done`, `latest_metric` and `spent_microusd`, null before it has any."""
    measured = Round.objects.filter(run_id=OuterRef("run_id"), validation_metric__isnull=False).order_by(
        "-index"
    )
    run = Run.objects.filter(pk=OuterRef("run_id"))
    return jobs_of(owner).annotate(
        rounds_done=Subquery(measured.annotate(number=F("index") + 1).values("number")[:1]),
        latest_metric=Subquery(measured.values("validation_metric")[:1]),
        spent_microusd=Subquery(run.values("spent_microusd")[:1]),
    )
