"""Datasets: taken in from an upload, checked, stored once; deleted when no job needs them."""

import tempfile
import uuid
from pathlib import Path
from typing import IO

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import ProtectedError

from accounts.models import User
from accounts.services import user_lock
from blobs.services import blob_put, blob_release
from marketplace.datasets.arrays import UploadedArrays
from marketplace.datasets.canonical import Plan, Task, plan, write_canonical
from marketplace.datasets.csv_table import read_csv
from marketplace.datasets.npz import read_npz
from marketplace.datasets.safetensors import read_safetensors
from marketplace.datasets.statistics import Statistics
from marketplace.errors import DatasetInUse, DatasetLimit, DatasetTooLarge, DatasetUnreadable
from marketplace.limits import DATASETS_MAX
from marketplace.models import Dataset
from marketplace.selectors import dataset_of

COPY_BYTES = 1024 * 1024


def dataset_upload(
    *,
    owner: User,
    name: str,
    file: IO[bytes],
    file_name: str,
    target_column: str | None = None,
    task: Task | None = None,
) -> tuple[Dataset, bool]:
    """Check and store an upload. Returns the dataset, and False if the owner already had this very data.

    `target_column` names the column of a CSV to predict (default: the last); `task` says what whole-number
    targets are for, where the default does not fit. Nothing is stored unless everything is right.
    """
    with tempfile.TemporaryDirectory(prefix="nightshift-dataset-") as folder:
        upload = _copy_bounded(file, Path(folder) / "upload")
        arrays = _read(upload, file_name, target_column)
        layout = plan(arrays, max_bytes=settings.MAX_DATASET_BYTES, task=task)
        canonical = Path(folder) / "canonical"
        with canonical.open("wb") as out:
            statistics = write_canonical(arrays, layout, out)
        return _store(owner, name, canonical, layout, statistics, arrays.labels)


def dataset_delete(*, owner: User, dataset_id: uuid.UUID) -> None:
    """Forget a dataset that no job was made with."""
    dataset = dataset_of(owner, dataset_id)
    try:
        with transaction.atomic():
            dataset.delete()
            blob_release(holder=_holder(dataset_id))
    except ProtectedError:
        raise DatasetInUse(
            f"The dataset '{dataset.name}' belongs to a job, whose record needs it; it cannot be deleted."
        ) from None


def _holder(dataset_id: uuid.UUID) -> str:
    return f"dataset:{dataset_id}"


def _copy_bounded(file: IO[bytes], path: Path) -> Path:
    limit_bytes = settings.MAX_DATASET_BYTES
    size_bytes = 0
    with path.open("wb") as out:
        while chunk := file.read(COPY_BYTES):
            size_bytes += len(chunk)
            if size_bytes > limit_bytes:
                raise DatasetTooLarge(
                    f"file: over the limit of {limit_bytes:,} bytes. Upload fewer rows.", field="file"
                )
            out.write(chunk)
    if size_bytes == 0:
        raise DatasetUnreadable("file: empty. Choose the file again and upload it whole.", field="file")
    return path


def _read(path: Path, file_name: str, target_column: str | None) -> UploadedArrays:
    match Path(file_name).suffix.lower():
        case ".npz":
            return read_npz(path, max_bytes=settings.MAX_DATASET_BYTES)
        case ".safetensors":
            return read_safetensors(path)
        case ".csv":
            return read_csv(path, target_column=target_column)
    raise DatasetUnreadable(
        f"file: '{Path(file_name).name[:60]}' cannot be read. Upload .npz, .safetensors or .csv.",
        field="file",
    )


def _store(
    owner: User, name: str, canonical: Path, layout: Plan, statistics: Statistics, labels: tuple[str, ...]
) -> tuple[Dataset, bool]:
    dataset_id = uuid.uuid4()
    with canonical.open("rb") as data:
        blob = blob_put(data=data, holder=_holder(dataset_id))
    try:
        with transaction.atomic():
            user_lock(owner)
            _check_quota(owner, blob.sha256)
            dataset = Dataset.objects.create(
                id=dataset_id,
                owner=owner,
                name=name,
                task=layout.task,
                sha256=blob.sha256,
                size_bytes=canonical.stat().st_size,
                rows=layout.rows,
                input_shape=list(layout.input_shape),
                input_dtype=layout.input_dtype,
                target_shape=list(layout.target_shape),
                target_dtype=layout.target_dtype,
                classes=statistics.classes,
                preview=statistics.preview(labels),
            )
    except IntegrityError:
        blob_release(holder=_holder(dataset_id))
        return Dataset.objects.get(owner=owner, sha256=blob.sha256), False
    except DatasetLimit:
        blob_release(holder=_holder(dataset_id))
        raise
    return dataset, True


def _check_quota(owner: User, sha256: str) -> None:
    """What the owner has already is no new one."""
    theirs = Dataset.objects.filter(owner=owner)
    if theirs.count() >= DATASETS_MAX and not theirs.filter(sha256=sha256).exists():
        raise DatasetLimit(
            f"You have {DATASETS_MAX} datasets, as many as one person may have. Delete one that no job needs."
        )
