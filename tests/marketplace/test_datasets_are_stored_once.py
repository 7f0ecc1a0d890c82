"""Datasets in the database and the blob store: whole or not at all, once for an owner, theirs alone."""

import io

import pytest
import safetensors.numpy

from blobs.models import Blob, BlobHold
from blobs.selectors import blob_bytes
from marketplace.datasets.services import dataset_delete, dataset_upload
from marketplace.errors import (
    DatasetInUse,
    DatasetNotFinite,
    DatasetNotFound,
    DatasetTooLarge,
    DatasetUnreadable,
)
from marketplace.models import Dataset
from marketplace.selectors import dataset_of, datasets_of
from tests.marketplace.cast import buyer, clusters, dataset_of_clusters, quoted_job

pytestmark = pytest.mark.django_db


def upload(owner, data: bytes, file_name: str = "c.npz", name: str = "clouds"):
    return dataset_upload(owner=owner, name=name, file=io.BytesIO(data), file_name=file_name)


def test_an_upload_is_stored_in_canonical_form_and_held():
    owner = buyer()
    dataset, is_new = upload(owner, clusters())
    assert is_new
    assert (dataset.task, dataset.rows, dataset.input_shape, dataset.classes) == ("classes", 120, [4], 2)
    stored = safetensors.numpy.load(blob_bytes(dataset.sha256, max_bytes=10**6))
    assert stored["inputs"].shape == (120, 4)
    assert list(BlobHold.objects.values_list("holder", flat=True)) == [f"dataset:{dataset.id}"]


def test_the_same_data_again_is_the_same_dataset():
    owner = buyer()
    first, _ = upload(owner, clusters(), name="first")
    again, is_new = upload(owner, clusters(), name="second")
    assert (again.id, again.name, is_new) == (first.id, "first", False)
    assert BlobHold.objects.count() == 1


def test_two_owners_of_the_same_data_have_a_dataset_each_and_share_the_blob():
    bea, ben = buyer("bea"), buyer("ben")
    assert upload(bea, clusters())[0].id != upload(ben, clusters())[0].id
    assert Blob.objects.count() == 1
    assert BlobHold.objects.count() == 2


@pytest.mark.parametrize(
    ("data", "file_name", "error"),
    [
        (clusters()[:-30], "c.npz", DatasetUnreadable),
        (b"", "c.npz", DatasetUnreadable),
        (clusters(), "c.pkl", DatasetUnreadable),
        (clusters(), "c.csv", DatasetUnreadable),
        (b"a,b\n1,0\nnan,1\n", "c.csv", DatasetNotFinite),
    ],
)
def test_a_refused_upload_leaves_nothing(data, file_name, error):
    with pytest.raises(error):
        upload(buyer(), data, file_name)
    assert not Dataset.objects.exists()
    assert not Blob.objects.exists()


def test_a_file_over_the_limit_is_refused_before_it_is_read_to_its_end(settings):
    settings.MAX_DATASET_BYTES = 10_000
    endless = io.BytesIO(bytes(10_000_000))
    with pytest.raises(DatasetTooLarge):
        dataset_upload(owner=buyer(), name="big", file=endless, file_name="big.npz")
    assert endless.tell() < 2_000_000
    assert not Blob.objects.exists()


def test_someone_elses_dataset_is_not_found():
    bea, ben = buyer("bea"), buyer("ben")
    dataset = dataset_of_clusters(bea)
    with pytest.raises(DatasetNotFound):
        dataset_of(ben, dataset.id)
    with pytest.raises(DatasetNotFound):
        dataset_delete(owner=ben, dataset_id=dataset.id)
    assert list(datasets_of(ben)) == []


def test_deleting_a_dataset_lets_its_blob_go():
    owner = buyer()
    dataset_delete(owner=owner, dataset_id=dataset_of_clusters(owner).id)
    assert not Dataset.objects.exists()
    assert not BlobHold.objects.exists()


def test_a_dataset_of_a_job_stays():
    owner = buyer()
    job = quoted_job(owner)
    with pytest.raises(DatasetInUse):
        dataset_delete(owner=owner, dataset_id=job.dataset_id)
    assert BlobHold.objects.filter(holder=f"dataset:{job.dataset_id}").exists()
