import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from marketplace.models import Dataset, Job
from tests.marketplace import cast

CSV = b"height,width,kind\n1,2,cat\n3,4,dog\n5,6,cat\n7,8,dog\n"


def upload(browser, data: bytes = CSV, file_name: str = "animals.csv", **fields):
    return browser.post("/datasets/", {"file": SimpleUploadedFile(file_name, data), **fields})


def test_a_file_becomes_a_dataset_with_a_preview(browser, ada):
    page = upload(browser)
    dataset = Dataset.objects.get()
    assert (dataset.owner, dataset.name, dataset.rows) == (ada, "animals", 4)
    assert page.url == f"/datasets/{dataset.pk}/"
    preview = browser.get(page.url).content.decode()
    assert "<td>cat</td>" in preview
    assert "1  2" in preview
    assert "Inputs from 1 to 8, on average 4.5." in " ".join(preview.split())


def test_the_column_to_predict_and_the_kind_of_targets_can_be_said(browser):
    upload(browser, b"a,b\n1,2\n3,4\n", name="Numbers", target_column="a", task="numbers")
    dataset = Dataset.objects.get()
    assert (dataset.name, dataset.task, dataset.preview["targets"]) == ("Numbers", "numbers", [[1.0], [3.0]])


def test_the_same_data_again_leads_to_the_dataset_that_there_is(browser):
    first = upload(browser)
    assert upload(browser, name="Another name").url == first.url
    assert b"You already have this very data" in browser.get(first.url).content
    assert Dataset.objects.count() == 1


@pytest.mark.parametrize(
    ("data", "file_name", "words"),
    [
        (b"PK not a zip", "data.npz", "npz"),
        (b"a,b\n1,nan\n2,3\n", "data.csv", "nan"),
        (CSV, "data.pickle", "upload .npz, .safetensors or .csv"),
        (b"", "data.csv", "empty"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_with_the_reason(browser, data, file_name, words):
    page = upload(browser, data, file_name)
    assert page.status_code == 400
    assert words in str(page.context["form"].errors).lower()
    assert not Dataset.objects.exists()


def test_the_list_shows_what_each_dataset_is(browser, ada):
    cast.dataset_of_clusters(ada)
    content = browser.get("/datasets/").content
    assert b"2 classes" in content
    assert b">120<" in content


def test_an_unused_dataset_can_be_deleted(browser, ada):
    dataset = cast.dataset_of_clusters(ada)
    assert browser.post(f"/datasets/{dataset.pk}/delete/").url == "/datasets/"
    assert not Dataset.objects.exists()


def test_a_dataset_of_a_job_stays_and_the_page_says_why(browser, ada):
    dataset = cast.quoted_job(ada).dataset
    page = browser.post(f"/datasets/{dataset.pk}/delete/")
    assert page.status_code == 409
    assert b"belongs to a job" in page.content
    assert Job.objects.get().dataset == dataset


def test_tokens_and_numbers_have_previews_of_their_own(browser, ada):
    for dataset in (cast.dataset_of_tokens(ada), cast.dataset_of_numbers(ada)):
        assert browser.get(f"/datasets/{dataset.pk}/").status_code == 200
