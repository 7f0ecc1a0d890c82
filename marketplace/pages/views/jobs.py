"""A buyer's jobs: list, post, follow, confirm, cancel, download."""

from uuid import UUID

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render

from accounts.models import User
from common.clock import utc_now
from common.errors import NightshiftError
from common.http import status_of
from marketplace.api.downloads import model_download
from marketplace.errors import DatasetNotFound
from marketplace.jobs.services import job_cancel, job_confirm, job_create
from marketplace.jobs.settings import settings_parse
from marketplace.pages.forms import JobForm, refuse
from marketplace.pages.job_list import job_list
from marketplace.pages.job_page import job_page
from marketplace.pages.views.requests import page
from marketplace.selectors import dataset_of, datasets_of, job_of

JOBS_ON_A_PAGE = 30


@page("GET", "HEAD")
def jobs(request: HttpRequest, person: User) -> HttpResponse:
    listed = Paginator(job_list(person), JOBS_ON_A_PAGE).get_page(request.GET.get("page"))
    context = {"jobs": listed, "has_datasets": bool(listed) or datasets_of(person).exists()}
    return render(request, "marketplace/jobs.html", context)


@page("GET", "HEAD", "POST")
def job_new(request: HttpRequest, person: User) -> HttpResponse:
    if request.method != "POST":
        return _new_page(request, _first_form(request, person))
    form = JobForm(person, request.POST)
    if not form.is_valid():
        return _new_page(request, form, status=400)
    try:
        settings = settings_parse(form.settings())
        job = job_create(owner=person, dataset_id=form.cleaned_data["dataset"].pk, settings=settings)
    except NightshiftError as error:
        return _new_page(request, form, status=refuse(form, error, field_names=form.field_names()))
    return redirect("job", job_id=job.pk)


@page("GET", "HEAD")
def job(request: HttpRequest, person: User, job_id: UUID) -> HttpResponse:
    return _job_page(request, person, job_id)


@page("GET", "HEAD")
def job_progress(request: HttpRequest, person: User, job_id: UUID) -> HttpResponse:
    """The part of the page that changes by itself."""
    return _job_page(request, person, job_id, template="marketplace/job_progress.html")


@page("POST")
def job_confirm_post(request: HttpRequest, person: User, job_id: UUID) -> HttpResponse:
    try:
        job_confirm(owner=person, job_id=job_id)
    except NightshiftError as error:
        return _refused(request, person, job_id, error)
    return redirect("job", job_id=job_id)


@page("POST")
def job_cancel_post(request: HttpRequest, person: User, job_id: UUID) -> HttpResponse:
    try:
        job_cancel(owner=person, job_id=job_id)
    except NightshiftError as error:
        return _refused(request, person, job_id, error)
    return redirect("job", job_id=job_id)


@page("GET", "HEAD")
def job_model(request: HttpRequest, person: User, job_id: UUID, model_format: str) -> HttpResponseBase:
    return model_download(request, job_of(person, job_id), model_format)


def _first_form(request: HttpRequest, person: User) -> JobForm | None:
    """For the dataset in the address, or the newest one; None if there is none yet."""
    if chosen := request.GET.get("dataset"):
        try:
            return JobForm.for_dataset(person, dataset_of(person, UUID(chosen)))
        except ValueError:
            raise DatasetNotFound("There is no such dataset among yours. Choose one of the list.") from None
    newest = datasets_of(person).first()
    return JobForm.for_dataset(person, newest) if newest else None


def _new_page(request: HttpRequest, form: JobForm | None, status: int = 200) -> HttpResponse:
    return render(request, "marketplace/job_new.html", {"form": form}, status=status)


def _refused(request: HttpRequest, person: User, job_id: UUID, error: NightshiftError) -> HttpResponse:
    """The job's page with what stood in the way; someone else's job stays 'not found'."""
    status = status_of(error)
    if status == 404 or status >= 500:
        raise error
    messages.error(request, error.message)
    return _job_page(request, person, job_id, status=status)


def _job_page(
    request: HttpRequest,
    person: User,
    job_id: UUID,
    *,
    template: str = "marketplace/job.html",
    status: int = 200,
) -> HttpResponse:
    shown = job_page(job_of(person, job_id), viewer=person, now=utc_now())
    return render(
        request, template, {"page": shown, "view": shown.view, "job": shown.view.job}, status=status
    )
