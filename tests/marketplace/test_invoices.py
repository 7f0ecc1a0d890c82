"""Invoices: one a job, numbered without gaps, equal to the ledger, and never changed."""

import itertools
from datetime import UTC, datetime

import pytest
from django.db import IntegrityError, connection, transaction
from django.test import Client
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from accounts.errors import InvalidAddress
from accounts.models import User
from accounts.services import user_set_invoice_address
from billing.models import Posting, Transfer
from billing.selectors import hold_charged
from marketplace.invoices.pdf import invoice_pdf
from marketplace.invoices.services import invoice_issue
from marketplace.invoices.sheet import sheet_of
from marketplace.invoices.terms import Work, few_lines_of, in_cents, lines_of, tax_note, tax_within
from marketplace.jobs.services import job_cancel
from marketplace.jobs.settling import settle_pending
from marketplace.models import Invoice, InvoiceYear, Job
from scheduler.models import Run
from tests.marketplace.cast import (
    buyer,
    person,
    priced_job,
    quoted_job,
    round_closes,
    run_ends,
)
from tests.marketplace.pages.reading import text_of

WORKS = st.lists(
    st.builds(
        Work,
        round_number=st.integers(1, 4),
        device_class=st.sampled_from(["laptop-cpu", "phone-high"]),
        rate_microusd=st.sampled_from([100, 400]),
        gpu_us=st.integers(0, 10**12),
        charge_microusd=st.integers(0, 10**9),
    )
)


@given(WORKS)
def test_lines_hold_all_work_and_all_money_and_nothing_else(works):
    lines = lines_of(works)
    assert sum(line.amount_microusd for line in lines) == sum(work.charge_microusd for work in works)
    assert sum(line.gpu_us for line in lines) == sum(work.gpu_us for work in works)
    assert [line.round_number for line in lines] == sorted(line.round_number for line in lines)


@given(WORKS, st.integers(1, 8))
def test_fewer_lines_hold_the_same(works, at_most):
    lines = few_lines_of(works, at_most=at_most)
    assert len(lines) <= max(at_most, 4)  # two classes at two rates are four lines at least
    assert sum(line.amount_microusd for line in lines) == sum(work.charge_microusd for work in works)
    assert sum(line.gpu_us for line in lines) == sum(work.gpu_us for work in works)


@given(st.integers(1, 10**15))
def test_cents_are_the_nearest_and_half_a_cent_goes_up(amount):
    assert abs(in_cents(amount) * 10_000 - amount) <= 5_000
    assert in_cents(5_000) == 1
    assert in_cents(4_999) == 0


@given(st.integers(1, 10**15), st.integers(0, 5_000))
def test_the_tax_contained_is_the_rate_of_what_remains(amount, basis_points):
    tax = tax_within(amount, basis_points)
    assert abs((amount - tax) * basis_points - tax * 10_000) <= (10_000 + basis_points) / 2
    assert tax_within(amount, 0) == 0


def settled(bea: User, *rounds: dict[User, int], dataset=None, seed: int = 0) -> Job:
    job = priced_job(bea, dataset=dataset, seed=seed)
    for earnings in rounds:
        round_closes(job, earnings)
    run_ends(job)
    settle_pending()
    job.refresh_from_db()
    return job


@pytest.mark.django_db
def test_a_settled_job_has_one_with_what_the_ledger_says(settings):
    settings.INVOICE_SELLER = "Nightshift Ltd\n1 Moon Street"
    bea, ann, ben = buyer(), person("ann"), person("ben")
    job = settled(bea, {ann: 101, ben: 50}, {ann: 7})
    invoice = Invoice.objects.get()
    assert (invoice.job, invoice.buyer, invoice.sequence) == (job, bea, 1)
    assert invoice.total_microusd == 158 == hold_charged(job.reference).amount_microusd
    assert invoice.fee_microusd == 20 + 10 + 1
    assert [
        (line.round_number, line.gpu_us, line.rate_microusd, line.amount_microusd)
        for line in invoice.lines.all()
    ] == [
        (1, 4_000_000, 100, 151),
        (2, 2_000_000, 100, 7),
    ]
    assert invoice.seller == "Nightshift Ltd\n1 Moon Street"
    assert invoice.buyer_details == "bea@example.org"
    assert "states no tax" in invoice.tax_note


@pytest.mark.django_db(transaction=True)
@hypothesis_settings(max_examples=5)
@given(rounds=st.lists(st.lists(st.integers(0, 400), min_size=1, max_size=3), min_size=1, max_size=3))
def test_its_total_is_the_sum_of_the_charges_whatever_they_are(rounds):
    number = User.objects.count()
    bea = buyer(f"bea-{number}")
    owners = [person(f"owner-{number}-{index}") for index in range(3)]
    job = settled(bea, *(dict(zip(owners, charges, strict=False)) for charges in rounds))
    charges = Transfer.objects.filter(reason="charge", postings__account__hold__reference=job.reference)
    paid = -sum(
        Posting.objects.filter(transfer__in=charges, amount_microusd__lt=0).values_list(
            "amount_microusd", flat=True
        )
    )
    assert paid == sum(map(sum, rounds))
    invoice = Invoice.objects.filter(job=job).first()
    assert (invoice.total_microusd if invoice else 0) == paid
    if invoice:
        assert sum(line.amount_microusd for line in invoice.lines.all()) == paid
        numbers = list(Invoice.objects.order_by("sequence").values_list("sequence", flat=True))
        assert numbers == list(range(1, len(numbers) + 1))


@pytest.mark.django_db
def test_what_cost_nothing_has_none():
    bea, ann = buyer(), person("ann")
    settled(bea, {ann: 0})
    job_cancel(owner=bea, job_id=quoted_job(bea, dataset=Job.objects.get().dataset, seed=1).pk)
    assert not Invoice.objects.exists()


@pytest.mark.django_db
def test_a_job_that_is_cancelled_is_invoiced_as_far_as_it_came():
    bea, ann = buyer(), person("ann")
    job = priced_job(bea)
    round_closes(job, {ann: 100})
    job_cancel(owner=bea, job_id=job.pk)
    run_ends(job, Run.State.CANCELLED, because="cancelled")
    settle_pending()
    assert Invoice.objects.get().total_microusd == 100


@pytest.mark.django_db
def test_issued_twice_is_issued_once_and_a_number_that_was_rolled_back_is_given_again():
    bea, ann = buyer(), person("ann")
    first = settled(bea, {ann: 100})
    second = settled(bea, {ann: 50}, dataset=first.dataset, seed=1)
    job = priced_job(bea, dataset=first.dataset, seed=2)
    round_closes(job, {ann: 10})
    settle_pending()
    now = datetime(2031, 1, 1, tzinfo=UTC)
    with transaction.atomic():
        assert str(invoice_issue(job=job, now=now)) == "2031-000001"
        transaction.set_rollback(True)
    issued = invoice_issue(job=job, now=now)
    assert issued is not None
    assert (issued.number, invoice_issue(job=job, now=now)) == ("2031-000001", issued)
    year = first.invoice.year
    assert [first.invoice.number, second.invoice.number] == [f"{year}-000001", f"{year}-000002"]
    assert dict(InvoiceYear.objects.values_list("year", "issued")) == {year: 2, 2031: 1}


@pytest.mark.django_db
def test_the_database_keeps_it_as_it_was():
    bea, ann = buyer(), person("ann")
    invoice = settled(bea, {ann: 100}).invoice
    for table, query in itertools.product(
        ("marketplace_invoice", "marketplace_invoiceline"), ("UPDATE {} SET id = id", "DELETE FROM {}")
    ):
        with (
            pytest.raises(IntegrityError, match="append-only"),
            transaction.atomic(),
            connection.cursor() as sql,
        ):
            sql.execute(query.format(table))
    user_set_invoice_address(user=bea, invoice_address="Bea Ltd")
    invoice.refresh_from_db()
    assert invoice.buyer_details == "bea@example.org"


@pytest.mark.django_db
def test_an_address_and_a_tax_rate_are_printed(settings):
    settings.INVOICE_TAX_NAME, settings.INVOICE_TAX_BASIS_POINTS = "VAT", 1_900
    bea, ann = buyer(), person("ann")
    user_set_invoice_address(user=bea, invoice_address="  Bea Ltd \r\n\r\n 2 Łódź Road\n日本 ")
    bea.refresh_from_db()
    invoice = settled(bea, {ann: 238}).invoice
    sheet = sheet_of(invoice)
    assert sheet.buyer == ("Bea Ltd", "2 Łódź Road", "日本")
    assert ("VAT contained (19 %)", "$0.000038") in sheet.sums
    assert sheet.sums[-1] == ("Total, USD", "$0.00")
    assert tax_note(tax_name="VAT", tax_basis_points=1_900) in sheet.notes
    pdf = invoice_pdf(invoice)
    assert pdf.startswith(b"%PDF-")
    assert invoice_pdf(Invoice.objects.get()) == pdf


@pytest.mark.django_db
def test_only_its_buyer_sees_it_on_pages_and_in_the_api():
    bea, ann, bob = buyer(), person("ann"), person("bob")
    invoice = settled(bea, {ann: 100}).invoice
    hers, his = Client(), Client()
    hers.force_login(bea)
    his.force_login(bob)
    for path in (
        f"/invoices/{invoice.pk}/",
        f"/invoices/{invoice.pk}/pdf/",
        f"/api/invoices/{invoice.pk}/",
        f"/api/invoices/{invoice.pk}/pdf/",
    ):
        assert hers.get(path).status_code == 200, path
        assert his.get(path).status_code == 404, path
        assert Client().get(path).status_code in (302, 401), path
    assert hers.get("/api/invoices/").json()["results"][0]["number"] == invoice.number
    assert his.get("/api/invoices/").json()["results"] == []
    shown = hers.get(f"/api/invoices/{invoice.pk}/").json()
    assert (shown["total_microusd"], shown["lines"][0]["gpu_us"]) == (100, 2_000_000)
    for path in ("/wallet/", "/invoices/", f"/jobs/{invoice.job_id}/"):
        assert invoice.number in text_of(hers.get(path)), path
        assert invoice.number not in his.get(path).content.decode()
    assert hers.get(f"/invoices/{invoice.pk}/pdf/").headers["Content-Type"] == "application/pdf"


@pytest.mark.django_db
def test_an_address_is_bounded_and_refused_beside_its_field():
    bea = buyer()
    client = Client()
    client.force_login(bea)
    for wrong in ("x" * 501, "a\n" * 9, "a\x07"):
        with pytest.raises(InvalidAddress):
            user_set_invoice_address(user=bea, invoice_address=wrong)
        page = client.post("/settings/invoice-address/", {"invoice_address": wrong})
        assert (page.status_code, "at most 8 lines" in text_of(page) or "Null" in text_of(page)) == (
            400,
            True,
        )
    assert client.post("/settings/invoice-address/", {"invoice_address": "Bea\nRoad 1"}).status_code == 302
    bea.refresh_from_db()
    assert bea.invoice_address == "Bea\nRoad 1"
    assert client.post("/settings/invoice-address/", {"invoice_address": ""}).status_code == 302


@pytest.mark.django_db
def test_a_long_job_has_all_its_rounds_on_numbered_pages():
    bea, ann = buyer(), person("ann")
    job = priced_job(bea)
    for _ in range(120):
        round_closes(job, {ann: 3})
    run_ends(job)
    settle_pending()
    invoice = Invoice.objects.get()
    assert len(sheet_of(invoice).lines) == 120
    assert invoice_pdf(invoice).count(b"/Type /Page\n") == 4
