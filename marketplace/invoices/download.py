"""Sending an invoice's PDF, from the API and from pages."""

from django.http import HttpResponse

from marketplace.invoices.pdf import invoice_pdf
from marketplace.models import Invoice


def invoice_download(invoice: Invoice) -> HttpResponse:
    return HttpResponse(
        invoice_pdf(invoice),
        content_type="application/pdf",
        headers={
            "Content-Disposition": f'attachment; filename="nightshift-invoice-{invoice.number}.pdf"',
            "Cache-Control": "private",
            "X-Content-Type-Options": "nosniff",
        },
    )
