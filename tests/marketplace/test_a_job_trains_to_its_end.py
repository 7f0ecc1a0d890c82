"""The buyer's whole way with the scheduler's real engine and devices that really train: upload to model and money."""

import io
from dataclasses import replace
from uuid import UUID

import numpy as np
import pytest
import torch

from billing.selectors import earnings_balance, fees_balance, ledger_differences, wallet_balance
from blobs.models import BlobHold
from blobs.selectors import blob_bytes, blob_open
from marketplace.catalogue.specs import Cnn, Mlp, ModelSpec
from marketplace.jobs.settling import settle_pending
from marketplace.models import Job
from marketplace.selectors import job_view
from metal_kernels.batches import samples_order
from metal_kernels.delta import delta_encode
from metal_kernels.program.format import program_loads
from metal_kernels.runtimes.reference import Batch, ReferenceRuntime, optimizer_zeros
from metal_kernels.tensorfile import tensorfile_loads
from scheduler.domain import events as ev
from scheduler.domain import instructions as ins
from scheduler.engine import Engine
from scheduler.models import Lease
from scheduler.selectors import LeaseWork, lease_for_device
from tests.marketplace.cast import USD, buyer, clusters, person, priced_job, running_job
from tests.scheduler.fleet_of import Clock, Fleet
from tests.scheduler.training import reported
from tests.scheduler.world import ADA, BO, connected

pytestmark = pytest.mark.django_db


class OwnedFleet(Fleet):
    """A fleet whose devices belong to people with accounts, and train whatever program their lease names."""

    owners: dict[UUID, int]

    def connect(self) -> None:
        self.turn(*(replace(connected(device), owner_id=self.owners[device]) for device in self.devices))

    def obey(self, instruction: ins.Instruction) -> None:
        if not isinstance(instruction, ins.SendLease):
            super().obey(instruction)
            return
        work = lease_for_device(instruction.lease_id)
        if work is not None and work.lease_id not in self.results:
            self.results[work.lease_id] = trained(work)


def trained(work: LeaseWork) -> ev.ResultReported:
    """An honest device's answer to a lease."""
    program = program_loads(blob(work.program_sha256), expected_sha256=work.program_sha256)
    base = tensorfile_loads(blob(work.params_sha256)).tensors
    rows = tensorfile_loads(blob(work.slice_sha256)).tensors
    batches = (
        Batch((rows["inputs"][chosen],), rows["targets"][chosen])
        for chosen in samples_order(
            rows=len(rows["inputs"]), batch=work.batch_size, steps=work.steps, seed=work.seed
        )
    )
    done = ReferenceRuntime(program).run_steps(
        {**base, **optimizer_zeros(program)}, batches, lr=lambda _: work.learning_rate
    )
    result = reported(work, delta_encode(base, {name: done.state[name] for name in base}), done.losses)
    return replace(result, gpu_us=10**9)  # claims far too much: the meter's other bounds decide


def blob(sha256: str) -> bytes:
    return blob_bytes(sha256, max_bytes=10**7)


def train_to_the_end(job: Job, owners: dict[UUID, int]) -> None:
    clock = Clock()
    engine = Engine(holder="test", clock=clock)
    engine.start()
    fleet = OwnedFleet(engine, clock, owners)
    fleet.owners = owners
    fleet.connect()
    for _ in range(200):
        fleet.report_all()
        settle_pending()
        job.refresh_from_db()
        if job.state != Job.State.RUNNING:
            return
    pytest.fail("the job did not end")


@pytest.mark.parametrize(
    "model", [Mlp(hidden=(16,)), Cnn(image=(1, 2, 2), channels=(8,))], ids=["mlp", "cnn"]
)
def test_a_job_is_trained_by_devices_paid_and_delivered(model: ModelSpec):
    bea, ann, ben = buyer(), person("ann"), person("ben")
    job = priced_job(bea, model=model, epochs=250)
    train_to_the_end(job, {ADA: ann.pk, BO: ben.pk})

    assert (job.state, job.ended_because) == (Job.State.FINISHED, "epochs")
    view = job_view(job)
    assert view.rounds_done == view.rounds_planned == job.rounds_planned
    assert view.latest_metric is not None
    assert view.latest_metric > 0.9

    charged = sum(Lease.objects.filter(state=Lease.State.ACCEPTED).values_list("charge_microusd", flat=True))
    assert 0 < charged == view.spent_microusd <= job.quote_cap_microusd
    assert wallet_balance(bea) == 100 * USD - charged
    assert earnings_balance(ann) + earnings_balance(ben) + fees_balance() == charged
    assert ledger_differences() == []

    data = np.load(io.BytesIO(clusters()))
    with blob_open(job.model_pt2_sha256) as file:
        predict = torch.export.load(io.BytesIO(file.read())).module()
    predicted = predict(torch.tensor(data["inputs"], dtype=torch.float32)).argmax(dim=1)
    assert (predicted.numpy() == data["targets"]).mean() > 0.9
    assert set(BlobHold.objects.values_list("holder", flat=True)) >= {job.model_holder}
    assert not BlobHold.objects.filter(holder=job.reference).exists()


def test_a_job_that_reaches_its_target_ends_early_and_gets_the_rest_back():
    bea, ann = buyer(), person("ann")
    job = running_job(bea, local_steps=20, epochs=500, target_metric=0.85)
    train_to_the_end(job, {ADA: ann.pk})
    assert (job.state, job.ended_because) == (Job.State.FINISHED, "target")
    assert job_view(job).rounds_done < job.rounds_planned
    assert wallet_balance(bea) == 100 * USD - job_view(job).spent_microusd
