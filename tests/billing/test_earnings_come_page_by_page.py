"""Earnings by day and device come in pages: none is lost or repeated, though days are equal and devices unnamed."""

import uuid
from base64 import b64encode
from datetime import UTC, date, datetime, timedelta

import pytest
from rest_framework.test import APIClient

from accounts.models import User
from billing.models import Earning, Transfer
from tests.billing.cast import USD, person

pytestmark = pytest.mark.django_db
DAY = date(2026, 12, 1)
ADDRESS = "/api/payouts/earnings/"


def earned(owner: User, rows: list[tuple[date, uuid.UUID | None]]) -> None:
    """One earning a row: what each brought is not what is asked about here."""
    transfers = Transfer.objects.bulk_create(
        Transfer(idempotency_key=f"lease:{owner.pk}:{number}", reason="charge", asked="a charge")
        for number in range(len(rows))
    )
    Earning.objects.bulk_create(
        Earning(
            transfer=transfer,
            owner=owner,
            device_id=device_id,
            day=day,
            amount_microusd=USD,
            fee_microusd=0,
            matures_at=datetime(2026, 12, 8, tzinfo=UTC),
        )
        for transfer, (day, device_id) in zip(transfers, rows, strict=True)
    )


def client_of(user: User) -> APIClient:
    client = APIClient()
    client.force_authenticate(user)
    return client


def pages_from(client: APIClient, address: str | None, towards: str = "next") -> list[list[tuple[str, str]]]:
    pages = []
    while address:
        page = client.get(address).data
        pages.append([(row["day"], row["device_id"]) for row in page["results"]])
        address = page[towards]
        assert len(pages) < 100, "the pages do not end"
    return pages


@pytest.mark.parametrize("page_size", [1, 2, 3, 4, 50])
def test_each_day_and_device_comes_once_in_both_directions(page_size, monkeypatch):
    monkeypatch.setattr("billing.api.views.ByDay.page_size", page_size)
    otto = person("otto")
    devices = [None, *(uuid.UUID(int=number) for number in range(1, 4))]
    days = [DAY - timedelta(days=number) for number in range(3)]
    rows = [(day, device) for day in days for device in devices]
    earned(otto, [*rows, *rows, (DAY - timedelta(days=9), None)])  # twice: a row adds up several charges
    client = client_of(otto)
    forwards = pages_from(client, ADDRESS)
    seen = [row for page in forwards for row in page]
    wanted = {(str(day), device and str(device)) for day, device in rows} | {("2026-11-22", None)}
    assert len(seen) == len(set(seen))
    assert set(seen) == wanted
    assert [day for day, _ in seen] == sorted((day for day, _ in seen), reverse=True)

    last = client.get(ADDRESS).data
    while last["next"]:
        last = client.get(last["next"]).data
    backwards = pages_from(client, last["previous"], "previous")
    before_the_last = seen[: len(seen) - len(forwards[-1])]
    assert [row for page in backwards[::-1] for row in page] == before_the_last


def test_a_fleet_of_more_than_a_thousand_devices_in_one_day_has_an_end():
    otto = person("otto")
    earned(otto, [(DAY, uuid.UUID(int=number)) for number in range(1, 1_251)])
    pages = pages_from(client_of(otto), ADDRESS)
    assert [len(page) for page in pages] == [100] * 12 + [50]
    assert len({row for page in pages for row in page}) == 1_250


@pytest.mark.parametrize("address", [ADDRESS, "/api/payouts/", "/api/payouts/deliveries/"])
@pytest.mark.parametrize(
    "cursor", ["x", "p=yesterday", "p=2026-13-45", "o=-1", "o=x", "r=x", "p=%00", f"o={10**30}", "p=0"]
)
def test_a_cursor_that_is_none_is_not_found_or_an_empty_page(address, cursor):
    otto = person("otto")
    earned(otto, [(DAY, None)])
    sent = cursor if cursor == "x" else b64encode(cursor.encode()).decode()
    answer = client_of(otto).get(address, {"cursor": sent})
    if cursor.startswith("o=1"):
        assert (answer.status_code, answer.data["results"]) == (200, [])
    else:
        assert (answer.status_code, answer.data["code"]) == (404, "not_found")
