"""A buyer's invoices: list, one as a page, one as a PDF."""

from uuid import UUID

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from accounts.models import User
from marketplace.invoices.download import invoice_download
from marketplace.invoices.sheet import sheet_of
from marketplace.pages.views.requests import page
from marketplace.selectors import invoice_of, invoices_of

INVOICES_ON_A_PAGE = 30


@page("GET", "HEAD")
def invoices(request: HttpRequest, person: User) -> HttpResponse:
    listed = Paginator(invoices_of(person), INVOICES_ON_A_PAGE).get_page(request.GET.get("page"))
    return render(request, "marketplace/invoices.html", {"invoices": listed})


@page("GET", "HEAD")
def invoice(request: HttpRequest, person: User, invoice_id: UUID) -> HttpResponse:
    shown = invoice_of(person, invoice_id)
    context = {"invoice": shown, "sheet": sheet_of(shown)}
    return render(request, "marketplace/invoice.html", context)


@page("GET", "HEAD")
def invoice_pdf(request: HttpRequest, person: User, invoice_id: UUID) -> HttpResponse:
    return invoice_download(invoice_of(person, invoice_id))
