"""The REST API of buyers: the same as the services do, in JSON, for the right token, about one's own things only."""

import io
import json
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from rest_framework.test import APIClient

from accounts.services import api_token_create
from billing.selectors import wallet_balance
from marketplace.jobs.settling import settle_pending
from marketplace.models import Dataset, Job
from scheduler.models import Run
from tests.marketplace.cast import (
    USD,
    buyer,
    clusters,
    dataset_of_clusters,
    person,
    priced_job,
    quoted_job,
    round_closes,
    run_ends,
)

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.marketplace.urls")]

JOB = {
    "name": "two clouds",
    "model": {"kind": "mlp", "hidden": [16]},
    "optimizer": {"kind": "sgd", "learning_rate": 0.1},
    "batch_size": 8,
    "local_steps": 6,
    "epochs": 3,
    "shards_per_round": 2,
    "budget_microusd": 5_000_000,
}


def client_of(user, *scopes: str) -> APIClient:
    """Signed in by session, or with scopes by a token of these."""
    client = APIClient()
    if scopes:
        _, plain = api_token_create(user=user, name="test", scopes=scopes)
        client.credentials(HTTP_AUTHORIZATION=f"Bearer {plain}")
    else:
        client.force_login(user)
    return client


def upload(client, data: bytes, file_name: str = "clouds.npz", **fields):
    form = {"file": SimpleUploadedFile(file_name, data), **fields}
    return client.post("/api/datasets/", form, format="multipart")


def test_a_dataset_is_uploaded_listed_shown_and_deleted():
    client = client_of(buyer())
    made = upload(client, clusters())
    assert made.status_code == 201
    assert (made.data["name"], made.data["rows"], made.data["classes"]) == ("clouds", 120, 2)
    assert made.data["preview"]["class_counts"] == [60, 60]
    assert upload(client, clusters()).status_code == 200
    address = f"/api/datasets/{made.data['id']}/"
    assert client.get("/api/datasets/").data["count"] == 1
    assert client.get(address).data["sha256"] == made.data["sha256"]
    assert client.delete(address).status_code == 204
    assert client.get(address).status_code == 404


def test_a_csv_names_its_target_column():
    made = upload(client_of(buyer()), b"kind,a\nx,1\ny,2\n", "t.csv", target_column="kind", name="plants")
    assert (made.status_code, made.data["name"], made.data["preview"]["labels"]) == (
        201,
        "plants",
        ["x", "y"],
    )


@pytest.mark.parametrize(
    ("data", "name", "fields", "status", "code", "field"),
    [
        (b"", "c.npz", {}, 400, "dataset_unreadable", "file"),
        (clusters()[:-9], "c.npz", {}, 400, "dataset_unreadable", "file"),
        (b"a,b\nnan,0\n1,1\n", "c.csv", {}, 400, "dataset_not_finite", "inputs"),
        (b"a,b\n1,0\n1,1\n", "c.csv", {"target_column": "z"}, 400, "dataset_shape", "target_column"),
        (b"a,b\n1,0\n1,1\n", "c.csv", {"task": "guess"}, 400, "invalid_input", "task"),
    ],
)
def test_a_wrong_upload_gets_one_sentence_that_names_the_field(data, name, fields, status, code, field):
    answer = upload(client_of(buyer()), data, name, **fields)
    assert (answer.status_code, answer.data["code"], answer.data["field"]) == (status, code, field)
    assert answer.data["message"]
    assert not Dataset.objects.exists()


def test_an_upload_that_declares_too_many_bytes_is_refused_by_its_length(settings):
    settings.MAX_DATASET_BYTES = 1000
    answer = upload(client_of(buyer()), bytes(100_000))
    assert (answer.status_code, answer.data["code"]) == (413, "dataset_too_large")


def test_the_catalogue_lists_models_with_their_parameters():
    answer = client_of(buyer()).get("/api/models/")
    assert {entry["kind"] for entry in answer.data} == {"mlp", "cnn", "gpt"}


def test_a_job_goes_from_quote_to_download():
    bea, ann = buyer(), person("ann")
    client = client_of(bea)
    dataset = upload(client, clusters()).data["id"]
    made = client.post("/api/jobs/", {**JOB, "dataset": dataset, "local_steps": 500})
    assert made.status_code == 201
    assert made.data["state"] == "quoted"
    assert made.data["quote"]["hold_microusd"] == made.data["quote"]["cap_microusd"]
    address = f"/api/jobs/{made.data['id']}/"
    assert "confirm" in client.get(address).data["waiting"]
    confirmed = client.post(f"{address}confirm/")
    assert (confirmed.status_code, confirmed.data["state_words"]) == (200, "training")
    assert client.get(f"{address}model/").data["code"] == "model_not_ready"

    job = Job.objects.get()
    round_closes(job, {ann: 100})
    shown = client.get(address).data
    assert (shown["rounds_done"], shown["latest_metric"], shown["spent_microusd"]) == (1, 0.9, 100)
    assert client.get(f"{address}rounds/").data[0]["number"] == 1
    run_ends(job)
    assert client.get(address).data["state_words"] == "settling the bill"
    settle_pending()
    shown = client.get(address).data
    assert (shown["state_words"], shown["downloads"]) == ("finished", ["safetensors", "pt2"])
    for model_format in ("safetensors", "pt2"):
        download: Any = client.get(f"{address}model/?format={model_format}")
        body = b"".join(download.streaming_content)
        assert download.headers["Content-Disposition"] == f'attachment; filename="two-clouds.{model_format}"'
        assert int(download.headers["Content-Length"]) == len(body) > 0


def test_a_job_is_cancelled():
    bea = buyer()
    job = quoted_job(bea)
    answer = client_of(bea).post(f"/api/jobs/{job.id}/cancel/")
    assert (answer.status_code, answer.data["job"]["state"]) == (200, "cancelled")
    assert client_of(bea).post(f"/api/jobs/{job.id}/confirm/").status_code == 409


def test_a_wallet_too_light_is_402_and_the_job_says_what_is_missing():
    bea = buyer(wallet_microusd=0)
    job = quoted_job(bea)
    client = client_of(bea)
    answer = client.post(f"/api/jobs/{job.id}/confirm/")
    assert (answer.status_code, answer.data["code"]) == (402, "insufficient_funds")
    assert "more in your wallet" in client.get(f"/api/jobs/{job.id}/").data["waiting"]


@pytest.mark.parametrize(
    ("changes", "code", "field"),
    [
        ({"budget_microusd": 0}, "job_invalid", "budget_microusd"),
        ({"batch_size": 1000}, "job_invalid", "batch_size"),
        ({"batch_size": "many"}, "invalid_input", "batch_size"),
        ({"model": {"kind": "mlp", "hidden": [0]}}, "model_invalid", "model.hidden[0]"),
        ({"model": {"kind": "cnn", "image": [1, 8, 8]}}, "model_does_not_fit", "model.image"),
        ({"optimizer": {"kind": "adagrad"}}, "job_invalid", "optimizer.kind"),
        ({"optimizer": {"kind": "sgd", "lr": 1}}, "job_invalid", "optimizer"),
        ({"loss": "mse"}, "job_invalid", "loss"),
        ({"name": None}, "invalid_input", "name"),
        ({"dataset": "not an id"}, "invalid_input", "dataset"),
    ],
)
def test_a_wrong_job_gets_one_sentence_that_names_the_field(changes, code, field):
    bea = buyer()
    answer = client_of(bea).post(
        "/api/jobs/", {**JOB, "dataset": str(dataset_of_clusters(bea).id), **changes}
    )
    assert (answer.status_code, answer.data["code"], answer.data["field"]) == (400, code, field)
    assert not Job.objects.exists()


def test_anything_of_someone_else_is_not_found():
    job = priced_job(buyer("bea"))
    client = client_of(buyer("ben"))
    addresses = [f"/api/datasets/{job.dataset_id}/"]
    addresses += [f"/api/jobs/{job.id}/{part}" for part in ("", "rounds/", "model/")]
    answers = [client.get(address) for address in addresses]
    answers += [client.post(f"/api/jobs/{job.id}/{part}/") for part in ("confirm", "cancel")]
    answers += [client.delete(f"/api/datasets/{job.dataset_id}/")]
    answers += [client.post("/api/jobs/", {**JOB, "dataset": str(job.dataset_id)})]
    assert [answer.status_code for answer in answers] == [404] * len(answers)
    assert client.get("/api/jobs/").data["count"] == 0
    assert Run.objects.count() == 1


@pytest.mark.parametrize(
    ("scope", "method", "address", "status"),
    [
        ("jobs:read", "get", "/api/jobs/", 200),
        ("jobs:read", "post", "/api/jobs/", 403),
        ("datasets:read", "get", "/api/datasets/", 200),
        ("datasets:read", "post", "/api/datasets/", 403),
        ("jobs:write", "get", "/api/datasets/", 403),
        ("money:read", "get", "/api/wallet/", 200),
        ("jobs:read", "get", "/api/wallet/", 403),
    ],
)
def test_a_token_does_what_its_scopes_say(scope, method, address, status):
    client = client_of(buyer(), scope)
    assert getattr(client, method)(address).status_code == status


@pytest.mark.parametrize("address", ["/api/jobs/", "/api/datasets/", "/api/models/", "/api/wallet/"])
def test_nothing_is_shown_to_strangers(address):
    assert APIClient().get(address).status_code == 401


def test_the_wallet_shows_balances_and_statements():
    bea = buyer()
    answer = client_of(bea).get("/api/wallet/")
    assert answer.data["wallet_microusd"] == wallet_balance(bea) == 100 * USD
    assert [line["reason"] for line in answer.data["wallet_statement"]] == ["grant"]


def test_the_schema_is_generated_without_a_warning():
    out = io.StringIO()
    call_command("spectacular", "--validate", "--fail-on-warn", "--format", "openapi-json", stdout=out)
    described = json.loads(out.getvalue())["paths"]
    assert {"/api/datasets/", "/api/jobs/{job_id}/confirm/", "/api/jobs/{job_id}/model/"} <= set(described)
