"""Whatever a client asks or sends, the API answers with its usual body."""

import json
from uuid import uuid4

import pytest
from rest_framework.test import APIClient

from tests.marketplace.cast import buyer

pytestmark = pytest.mark.django_db

SURROGATE = chr(0xD800)  # half a character, which JSON can spell and no database can store


@pytest.fixture
def client() -> APIClient:
    client = APIClient()
    client.force_login(buyer())
    return client


def post(client: APIClient, body: bytes):
    return client.post("/api/jobs/", body, content_type="application/json")


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b'{"name": NaN}',
        b'{"seed": 1e999}',
        b'{"seed": ' + b"9" * 5_000 + b"}",
        b'{"name": "\xff"}',
        json.dumps({"name": SURROGATE}).encode(),
        json.dumps({"model": {"kind": SURROGATE}}).encode(),
        json.dumps({"model": {SURROGATE: 1}}).encode(),
    ],
    ids=lambda body: ascii(body[:20]),
)
def test_a_body_that_is_no_sound_json_is_a_parse_error(client, body):
    response = post(client, body)
    assert (response.status_code, response.json()["code"]) == (400, "parse_error")


def test_a_body_over_the_bound_is_refused(client, settings):
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 100
    response = post(client, json.dumps({"name": "a" * 100}).encode())
    assert (response.status_code, response.json()["code"]) == (413, "request_too_big")


def test_a_form_of_too_many_fields_is_refused(client):
    form = {f"field{n}": "1" for n in range(2_000)}
    response = client.post("/api/datasets/", form, format="multipart")
    assert (response.status_code, response.json()["code"]) == (413, "request_too_big")


@pytest.mark.parametrize(
    ("changes", "field", "message"),
    [
        ({"budget_microusd": "much"}, "budget_microusd", "budget_microusd: a valid integer is required."),
        ({"model": "mlp"}, "model", 'model: expected a dictionary of items but got type "str".'),
        ({"dataset": 7.5}, "dataset", "dataset: must be a valid UUID."),
    ],
)
def test_a_wrong_value_gets_one_sentence_that_names_the_field(client, changes, field, message):
    job = {"dataset": str(uuid4()), "name": "a", "model": {}, "budget_microusd": 1} | changes
    response = post(client, json.dumps(job).encode())
    assert response.status_code == 400
    assert response.json() == {"code": "invalid_input", "message": message, "field": field}


def test_a_wrong_list_is_named_without_the_framework_s_words(client):
    response = client.put("/api/windows/", {"windows": "all night"}, format="json")
    assert response.json()["field"] == "windows"


@pytest.mark.parametrize("query", ["limit=99999999999999999999", "offset=99999999999999999999", "limit=-1"])
def test_no_page_of_a_list_is_too_far_or_too_long(client, query):
    assert client.get(f"/api/jobs/?{query}").status_code == 200


@pytest.mark.parametrize("address", ["/api/nothing/", "/api/jobs/7/", "/blobs/a/b"])
def test_an_address_that_is_none_is_not_found_in_the_usual_body(client, address):
    response = client.get(address)
    assert (response.status_code, response.json()["code"]) == (404, "not_found")


def test_a_failure_of_ours_is_told_in_the_usual_body_without_its_story(client, monkeypatch):
    def fail(*_):
        raise ZeroDivisionError("a secret")

    monkeypatch.setattr("marketplace.selectors.jobs_of", fail)
    client.raise_request_exception = False
    response = client.get("/api/jobs/")
    assert (response.status_code, response.json()["code"]) == (500, "internal")
    assert b"secret" not in response.content


@pytest.mark.parametrize("method", ["get", "head"])
def test_the_docs_page_is_read(client, method):
    assert getattr(client, method)("/api/docs/").status_code == 200


@pytest.mark.parametrize("method", ["options", "post", "put"])
def test_the_docs_page_takes_nothing_else(client, method):
    assert getattr(client, method)("/api/docs/").status_code == 405
