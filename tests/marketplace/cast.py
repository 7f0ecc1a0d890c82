"""The people, data and jobs of the buyer's tests, and a scheduler that does as it is told."""

import io
import uuid
from datetime import timedelta
from typing import Any

import numpy as np
import safetensors.torch

from accounts.models import User
from billing.services import grant_post
from blobs.selectors import blob_bytes
from blobs.services import blob_put
from common.clock import utc_now
from marketplace.catalogue.specs import Gpt, Mlp
from marketplace.datasets.services import dataset_upload
from marketplace.jobs.services import job_confirm, job_create
from marketplace.jobs.settings import JobSettings, Sgd
from marketplace.models import Dataset, Job
from scheduler.models import Lease, Round, Run, RunNews, Shard
from tests.marketplace.files import npz

USD = 1_000_000


def person(name: str) -> User:
    return User.objects.create_user(f"{name}@example.org", "a long enough password")


def buyer(name: str = "bea", *, wallet_microusd: int = 100 * USD) -> User:
    user = person(name)
    if wallet_microusd:
        operator, _ = User.objects.get_or_create(email="olive@example.org", defaults={"is_staff": True})
        grant_post(
            user=user,
            amount_microusd=wallet_microusd,
            operator=operator,
            idempotency_key=f"grant {name}",
            reason="to begin with.",
        )
    return user


def clusters(rows: int = 120) -> bytes:
    """Two clouds of points that a line divides, as a `.npz`."""
    targets = np.arange(rows) % 2
    inputs = np.random.default_rng(7).normal(size=(rows, 4)) + 3 * targets[:, None]
    return npz(inputs=inputs, targets=targets)


def dataset_of_clusters(owner: User, *, rows: int = 120) -> Dataset:
    dataset, _ = dataset_upload(
        owner=owner, name="clusters", file=io.BytesIO(clusters(rows)), file_name="c.npz"
    )
    return dataset


def dataset_of_tokens(owner: User) -> Dataset:
    tokens = np.arange(20 * 9).reshape(20, 9) % 11
    data = npz(inputs=tokens[:, :-1], targets=tokens[:, 1:])
    dataset, _ = dataset_upload(owner=owner, name="tokens", file=io.BytesIO(data), file_name="t.npz")
    return dataset


def dataset_of_numbers(owner: User) -> Dataset:
    values = np.linspace(0, 1, 30)
    data = npz(inputs=values[:, None], targets=values**2)
    dataset, _ = dataset_upload(owner=owner, name="numbers", file=io.BytesIO(data), file_name="n.npz")
    return dataset


def settings(**changes: Any) -> JobSettings:
    chosen: dict[str, Any] = {
        "name": "two clouds",
        "model": Mlp(hidden=(16,)),
        "optimizer": Sgd(learning_rate=0.1),
        "batch_size": 8,
        "local_steps": 6,
        "epochs": 3,
        "shards_per_round": 2,
        "budget_microusd": 5 * USD,
    }
    return JobSettings(**{**chosen, **changes})


def small_gpt() -> Gpt:
    return Gpt(vocabulary=11, context=8, width=16, layers=1, heads=2)


def quoted_job(owner: User, dataset: Dataset | None = None, **changes: Any) -> Job:
    dataset = dataset or dataset_of_clusters(owner)
    return job_create(owner=owner, dataset_id=dataset.id, settings=settings(**changes))


def running_job(owner: User, dataset: Dataset | None = None, **changes: Any) -> Job:
    return job_confirm(owner=owner, job_id=quoted_job(owner, dataset, **changes).id)


def priced_job(owner: User, dataset: Dataset | None = None, **changes: Any) -> Job:
    """A running job of so many steps that there is money to charge to: its hold is some thousand micro-USD."""
    return running_job(owner, dataset, **{"local_steps": 500, **changes})


def run_of(job: Job) -> Run:
    return Run.objects.get(pk=str(job.run_id))


def round_closes(job: Job, earnings: dict[User, int]) -> list[Lease]:
    """A round in which each owner's device had a result of that charge accepted; the news is published."""
    run = run_of(job)
    now = utc_now()
    index = run.rounds.count()
    round_ = Round.objects.create(
        run=run,
        index=index,
        state=Round.State.CLOSED,
        params_sha256=run.params_sha256,
        opened_at=now - timedelta(seconds=10),
        closed_at=now,
        training_loss=0.5,
        validation_loss=0.4,
        validation_metric=0.9,
    )
    leases = [
        Lease.objects.create(
            shard=Shard.objects.create(
                round=round_, index=number, slice_index=number, seed=number, state=Shard.State.DONE
            ),
            device_id=uuid.uuid4(),
            owner_id=owner.pk,
            device_class="laptop-cpu",
            state=Lease.State.ACCEPTED,
            step=run.local_steps,
            granted_at=now,
            deadline_at=now,
            ended_at=now,
            expected_gpu_us=1_000_000,
            rate_microusd=100,
            fee_basis_points=run.fee_basis_points,
            max_charge_microusd=max(charge_microusd, 1),
            metered_gpu_us=2_000_000,
            charge_microusd=charge_microusd,
        )
        for number, (owner, charge_microusd) in enumerate(earnings.items())
    ]
    run.spent_microusd += sum(earnings.values())
    run.params_sha256 = _trained(run)
    run.save()
    RunNews.publish("round_closed", run_id=str(run.pk), round_index=index)
    return leases


def run_ends(
    job: Job, state: str = Run.State.FINISHED, because: str = "epochs", message: str = "Done."
) -> None:
    Run.objects.filter(pk=str(job.run_id)).update(
        state=state, ended_because=because, ended_message=message, ended_at=utc_now()
    )
    RunNews.publish("run_ended", run_id=str(job.run_id))


def _trained(run: Run) -> str:
    """Parameters that differ from the present ones, held as the scheduler holds them."""
    present = safetensors.torch.load(blob_bytes(run.params_sha256, max_bytes=10**7))
    changed = {name: tensor + 1 for name, tensor in present.items()}
    return blob_put(data=safetensors.torch.save(changed), holder=f"run:{run.pk}").sha256
