"""A buyer's datasets: upload, list, preview, delete."""

from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from accounts.models import User
from common.errors import NightshiftError
from common.http import status_of
from marketplace.datasets.services import dataset_delete, dataset_upload
from marketplace.errors import DatasetInUse
from marketplace.pages.forms import DatasetForm, refuse
from marketplace.pages.previews import preview_of
from marketplace.pages.views.requests import page
from marketplace.selectors import dataset_of, datasets_of


@page("GET", "HEAD", "POST")
def datasets(request: HttpRequest, person: User) -> HttpResponse:
    if request.method != "POST":
        return _datasets_page(request, person, DatasetForm())
    form = DatasetForm(request.POST, request.FILES)
    if not form.is_valid():
        return _datasets_page(request, person, form, status=400)
    try:
        dataset, is_new = dataset_upload(owner=person, **form.upload())
    except NightshiftError as error:
        return _datasets_page(request, person, form, status=refuse(form, error))
    if not is_new:
        messages.info(request, "You already have this very data; here it is.")
    return redirect("dataset", dataset_id=dataset.pk)


@page("GET", "HEAD")
def dataset(request: HttpRequest, person: User, dataset_id: UUID) -> HttpResponse:
    return _dataset_page(request, person, dataset_id)


@page("POST")
def dataset_delete_post(request: HttpRequest, person: User, dataset_id: UUID) -> HttpResponse:
    try:
        dataset_delete(owner=person, dataset_id=dataset_id)
    except DatasetInUse as error:
        messages.error(request, error.message)
        return _dataset_page(request, person, dataset_id, status=status_of(error))
    messages.success(request, "The dataset is deleted.")
    return redirect("datasets")


def _datasets_page(request: HttpRequest, person: User, form: DatasetForm, status: int = 200) -> HttpResponse:
    context = {"datasets": datasets_of(person), "form": form}
    return render(request, "marketplace/datasets.html", context, status=status)


def _dataset_page(request: HttpRequest, person: User, dataset_id: UUID, status: int = 200) -> HttpResponse:
    found = dataset_of(person, dataset_id)
    context = {"dataset": found, "preview": preview_of(found)}
    return render(request, "marketplace/dataset.html", context, status=status)
