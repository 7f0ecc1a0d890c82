"""Reads of datasets and jobs, each checked against its owner: someone else's is 'not found'."""

import uuid

from django.db.models import QuerySet

from accounts.models import User
from marketplace.errors import DatasetNotFound, InvoiceNotFound, JobInvalid, JobNotFound, ModelNotReady
from marketplace.jobs.view import JobView, RoundView, job_view
from marketplace.models import Dataset, Invoice, Job

__all__ = [
    "JobView",
    "RoundView",
    "dataset_of",
    "datasets_of",
    "invoice_of",
    "invoices_of",
    "job_model_sha256",
    "job_of",
    "job_view",
    "jobs_of",
]


def datasets_of(owner: User) -> QuerySet[Dataset]:
    return Dataset.objects.filter(owner=owner)


def dataset_of(owner: User, dataset_id: uuid.UUID) -> Dataset:
    dataset = datasets_of(owner).filter(pk=dataset_id).first()
    if dataset is None:
        raise DatasetNotFound(
            "There is no such dataset among yours. Choose one of the list.", field="dataset"
        )
    return dataset


def jobs_of(owner: User) -> QuerySet[Job]:
    """Newest first, with their datasets."""
    return Job.objects.filter(owner=owner).select_related("dataset")


def job_of(owner: User, job_id: uuid.UUID) -> Job:
    job = jobs_of(owner).filter(pk=job_id).first()
    if job is None:
        raise JobNotFound("There is no such job among yours. Choose one of the list.")
    return job


def job_model_sha256(job: Job, model_format: str) -> str:
    """The blob of a job's model as `safetensors` or `pt2`. Raises ModelNotReady; JobInvalid for another format."""
    stored = {"safetensors": job.model_safetensors_sha256, "pt2": job.model_pt2_sha256}
    if model_format not in stored:
        raise JobInvalid(f"format: '{model_format[:20]}' is unknown. Use safetensors or pt2.", field="format")
    if not stored[model_format]:
        raise ModelNotReady(
            "There is no trained model yet. It is stored when the job ends, if a round was done."
        )
    return stored[model_format]


def invoices_of(buyer: User) -> QuerySet[Invoice]:
    """Newest first."""
    return Invoice.objects.filter(buyer=buyer)


def invoice_of(buyer: User, invoice_id: uuid.UUID) -> Invoice:
    """With its lines."""
    invoice = invoices_of(buyer).filter(pk=invoice_id).prefetch_related("lines").first()
    if invoice is None:
        raise InvoiceNotFound("There is no such invoice among yours. Choose one of the list.")
    return invoice
