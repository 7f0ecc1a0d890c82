"""The form of a new job: what a newcomer gets by changing nothing, and where each refusal is shown."""

from typing import Any

import pytest

from marketplace.models import Job
from marketplace.pages.forms.jobs import JobForm, image_shape
from tests.marketplace import cast

NEW = "/jobs/new/"


def filled(page: Any, **changes: Any) -> dict[str, Any]:
    """What a browser sends of the form on `page`."""
    form = page.context["form"]
    values = {name: form[name].value() for name in form.fields}
    return {name: value for name, value in {**values, **changes}.items() if value is not None}


def test_a_newcomer_who_changes_nothing_gets_a_quote(browser, ada):
    dataset = cast.dataset_of_clusters(ada, rows=200)
    page = browser.post(NEW, filled(browser.get(NEW)))
    job = Job.objects.get()
    assert page.url == f"/jobs/{job.pk}/"
    assert (job.owner, job.dataset, job.state) == (ada, dataset, "quoted")
    assert (job.model_spec["hidden"], job.batch_size, job.local_steps) == ([128], 16, 20)
    assert b"Confirm and set" in browser.get(page.url).content


def test_the_dataset_in_the_address_is_chosen(browser, ada):
    older = cast.dataset_of_clusters(ada)
    cast.dataset_of_numbers(ada)
    page = browser.get(f"{NEW}?dataset={older.pk}")
    assert page.context["form"]["dataset"].value() == older.pk


@pytest.mark.parametrize("address", ["?dataset=nonsense", "?dataset=7f0f8a0e-53a1-4f5e-8a36-1d0a5a1b9c11"])
def test_a_dataset_that_is_not_there_is_not_found(browser, ada, address):
    cast.dataset_of_clusters(ada)
    assert browser.get(NEW + address).status_code == 404


def test_tokens_start_with_a_transformer_that_fits_them(browser, ada):
    dataset = cast.dataset_of_tokens(ada)
    page = browser.get(f"{NEW}?dataset={dataset.pk}")
    browser.post(NEW, filled(page, gpt_width=16, gpt_layers=1, gpt_heads=2, batch_size=4, local_steps=2))
    spec = Job.objects.get().model_spec
    assert (spec["kind"], spec["context"], spec["vocabulary"]) == ("gpt", 8, 11)


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        ({"budget": "lots"}, "budget", "amount in USD"),
        ({"budget": "0"}, "budget", "1"),
        ({"mlp_hidden": "wide"}, "mlp_hidden", "whole numbers"),
        ({"mlp_hidden": "999999"}, "mlp_hidden", "4096"),
        ({"sgd_learning_rate": "-1"}, "sgd_learning_rate", "expected"),
        ({"batch_size": "4000"}, "batch_size", "more than the"),
        ({"validation_split": "2"}, "validation_split", "expected"),
        ({"model": "cnn", "cnn_image": "3, 9, 9"}, "cnn_image", "Set image to match"),
        ({"loss": "mse"}, "loss", "does not fit"),
        ({"mlp_dropout": "1"}, "mlp_dropout", "0.9"),
        ({"label_smoothing": "1"}, "label_smoothing", "0.9"),
        ({"clip_norm": "0"}, "clip_norm", "expected"),
        ({"target_metric": "7"}, "target_metric", "1"),
        ({"name": ""}, "name", "required"),
    ],
)
def test_what_is_wrong_is_said_beside_its_field(browser, ada, changes, field, words):
    cast.dataset_of_clusters(ada)
    page = browser.post(NEW, filled(browser.get(NEW), **changes))
    assert page.status_code == 400
    assert list(page.context["form"].errors) == [field]
    assert words.lower() in page.context["form"].errors[field][0].lower()
    assert not page.context["form"].errors[field][0].startswith(f"{field}:")
    assert not Job.objects.exists()


def test_what_was_typed_stays_in_the_form(browser, ada):
    cast.dataset_of_clusters(ada)
    page = browser.post(NEW, filled(browser.get(NEW), name="Careful work", budget="lots"))
    assert b"Careful work" in page.content


def test_someone_elses_dataset_cannot_be_chosen(browser, ada, bob):
    cast.dataset_of_clusters(ada)
    bobs = cast.dataset_of_numbers(bob)
    page = browser.post(NEW, filled(browser.get(NEW), dataset=bobs.pk))
    assert page.status_code == 400
    assert list(page.context["form"].errors) == ["dataset"]


def test_without_a_dataset_the_page_says_to_upload_one(browser):
    page = browser.get(NEW)
    assert page.context["form"] is None
    assert b'href="/datasets/"' in page.content


@pytest.mark.parametrize(
    ("rows", "image"), [([3, 8, 9], [3, 8, 9]), ([8, 9], [1, 8, 9]), ([64], [1, 8, 8]), ([63], [1, 7, 7])]
)
def test_an_image_is_read_off_the_shape_of_the_rows(rows, image):
    assert image_shape(rows) == image


def test_fields_of_the_kind_that_was_not_chosen_are_left_out(ada):
    dataset = cast.dataset_of_clusters(ada)
    data = {
        "name": "a",
        "dataset": dataset.pk,
        "model": "mlp",
        "optimizer": "adamw",
        "budget": "1",
        "gpt_width": "64",
    }
    form = JobForm(ada, data)
    assert form.is_valid(), form.errors
    assert form.settings() == {
        "name": "a",
        "model": {"kind": "mlp"},
        "optimizer": {"kind": "adamw"},
        "budget_microusd": 1_000_000,
    }
