"""Buyers' jobs and owners' fleets in the states that pages must show, on real data."""

import io
import math
import uuid
from collections.abc import Sequence
from datetime import time, timedelta

from asgiref.sync import async_to_sync

from accounts.domain.windows import Window
from accounts.models import Device, User
from accounts.services import idle_windows_replace
from billing.services import wallet_freeze
from common.clock import utc_now
from marketplace.datasets.services import dataset_upload
from marketplace.jobs.pausing import freezes_pending
from marketplace.jobs.services import job_confirm, job_create
from marketplace.jobs.settings import settings_parse
from marketplace.jobs.settling import settle_pending
from marketplace.models import Dataset, Job
from scheduler.models import Lease, Round, Run, Shard, Spell, Standing
from tests.marketplace.cast import round_closes, run_ends, run_of
from tests.marketplace.files import npz
from worker_protocol.presences import presence_note

ALWAYS = [Window(day, time(0), time(0)) for day in range(7)]
NIGHTS = [Window(day, time(22), time(7)) for day in range(5)] + [Window(5, time(23, 30), time(10))]


def digits(owner: User) -> Dataset:
    """scikit-learn's handwritten digits: 1,797 images of 8 x 8."""
    from sklearn.datasets import load_digits  # slow to import, and only pictures need it

    data = load_digits()
    file = io.BytesIO(npz(inputs=(data.data / 16).astype("float32"), targets=data.target))
    dataset, _ = dataset_upload(owner=owner, name="Handwritten digits", file=file, file_name="digits.npz")
    return dataset


def digits_job(owner: User, dataset: Dataset, *, name: str) -> Job:
    chosen = {"name": name, "model": {"kind": "mlp"}, "epochs": 20, "budget_microusd": 2_000_000}
    return job_create(owner=owner, dataset_id=dataset.pk, settings=settings_parse(chosen))


def trained(job: Job, *, rounds: int, owner: User, devices: Sequence[str] = ()) -> Job:
    """Confirm a job and let `rounds` rounds close, with losses that fall as they do; the devices work in turn."""
    # As if the work were dear enough for the charges to come.
    Job.objects.filter(pk=job.pk).update(hold_microusd=job.budget_microusd)
    job = job_confirm(owner=job.owner, job_id=job.pk)
    for index in range(rounds):
        round_closes(job, {owner: 37_400 + 90 * index})
        Round.objects.filter(run=run_of(job), index=index).update(
            training_loss=0.06 + 2.1 * math.exp(-index / 4),
            validation_loss=0.11 + 2.0 * math.exp(-index / 4.5) + 0.02 * math.sin(index),
            validation_metric=0.972 - 0.75 * math.exp(-index / 3.5),
        )
    if devices:
        worked(owner, devices)
    settle_pending()
    job.refresh_from_db()
    return job


def finished(job: Job, *, rounds: int, owner: User, devices: Sequence[str] = ()) -> Job:
    return ended(trained(job, rounds=rounds, owner=owner, devices=devices))


def ended(job: Job) -> Job:
    run_ends(job, message="All planned rounds are done.")
    settle_pending()
    job.refresh_from_db()
    return job


def paused(job: Job) -> Job:
    """A running job whose buyer's wallet has been frozen."""
    job = trained(job, rounds=3, owner=job.owner)
    wallet_freeze(user=job.owner, because="a payment into it has been disputed with its bank.")
    freezes_pending()
    Run.objects.filter(pk=str(job.run_id)).update(state=Run.State.PAUSED)
    return job


def round_under_way(job: Job, device: Device) -> Lease:
    """An open round of three shards: one done, one on `device`, one waiting."""
    run = run_of(job)
    now = utc_now()
    round_ = Round.objects.create(
        run=run,
        index=run.rounds.count(),
        params_sha256=run.params_sha256,
        opened_at=now - timedelta(seconds=4),
    )
    shards = [
        Shard.objects.create(round=round_, index=index, slice_index=index, seed=index, state=state)
        for index, state in enumerate((Shard.State.DONE, Shard.State.LEASED, Shard.State.PENDING))
    ]
    return Lease.objects.create(
        shard=shards[1],
        device_id=device.pk,
        owner_id=device.owner_id,
        device_class=device.device_class,
        state=Lease.State.RUNNING,
        step=12,
        granted_at=now - timedelta(seconds=3),
        deadline_at=now + timedelta(seconds=30),
        expected_gpu_us=80_000,
        rate_microusd=400,
        fee_basis_points=run.fee_basis_points,
        max_charge_microusd=100,
    )


def device_of(owner: User, name: str, **facts: object) -> Device:
    key = uuid.uuid5(uuid.NAMESPACE_OID, f"{owner.pk} {name}").bytes * 2
    return Device.objects.create(owner=owner, name=name, public_key=key, **facts)


def connected(device: Device, blocked: str | None = None) -> Device:
    Device.objects.filter(pk=device.pk).update(last_seen_at=utc_now())
    async_to_sync(presence_note)(device_id=device.pk, session_id="socket", blocked=blocked)
    return device


def fleet(owner: User) -> Device:
    """A device in each of the states an owner may find it in; returns the one that can be given work."""
    idle_windows_replace(owner=owner, device_id=None, windows=ALWAYS)
    phone = connected(device_of(owner, "Pixel on the shelf", kind="phone", device_class="phone-high"))
    connected(device_of(owner, "Kitchen tablet", kind="tablet", device_class="phone-entry"), "battery_low")
    nightly = connected(device_of(owner, "Work laptop", device_class="laptop-gpu"), "outside_window")
    idle_windows_replace(owner=owner, device_id=nightly.pk, windows=NIGHTS)
    connected(device_of(owner, "Living room laptop", speed_factor=1.4))
    connected(device_of(owner, "Old phone with a long name that someone gave it", kind="phone"))
    device_of(owner, "Spare", state=Device.State.PAUSED)
    device_of(owner, "Travel laptop", last_seen_at=utc_now() - timedelta(hours=5))
    return phone


def benched(device: Device, minutes: int = 25) -> None:
    """The device has had three refused results in a row."""
    lease = Lease.objects.filter(state=Lease.State.ACCEPTED).first()
    assert lease is not None
    Lease.objects.filter(pk=lease.pk).update(
        state=Lease.State.REFUSED, device_id=device.pk, charge_microusd=0
    )
    until = utc_now() + timedelta(minutes=minutes)
    Standing.objects.create(device_id=device.pk, failures_in_a_row=3, benched_until=until)


def worked(owner: User, names: Sequence[str]) -> None:
    """The owner's accepted results were those of these devices, in turn."""
    devices = list(Device.objects.filter(owner=owner, name__in=names))
    for index, lease in enumerate(Lease.objects.filter(owner_id=owner.pk, state=Lease.State.ACCEPTED)):
        Lease.objects.filter(pk=lease.pk).update(device_id=devices[index % len(devices)].pk)


def night_of(device: Device, *spells: tuple[str | None, float, float]) -> None:
    """The device's record: (what blocked it, from, to) in hours before now; 0 as an end is 'still'."""
    now = utc_now()
    Spell.objects.bulk_create(
        Spell(
            id=uuid.uuid4(),
            device_id=device.pk,
            blocked=blocked,
            began_at=now - timedelta(hours=begins),
            ended_at=now - timedelta(hours=ends) if ends else None,
        )
        for blocked, begins, ends in spells
    )


def spread(owner: User, *, hours: Sequence[float]) -> None:
    """The owner's accepted leases, as if they had been worked off at these hours before now, over and over."""
    now = utc_now()
    for index, lease in enumerate(Lease.objects.filter(owner_id=owner.pk, state=Lease.State.ACCEPTED)):
        round_, place = divmod(index, len(hours))
        ended_at = now - timedelta(hours=hours[place], minutes=13 * round_)
        minutes = 24 + 7 * ((index * 5) % 4)
        Lease.objects.filter(pk=lease.pk).update(
            granted_at=ended_at - timedelta(minutes=minutes), ended_at=ended_at
        )


def nights(owner: User) -> None:
    """What a fleet (above) did in the last 24 hours: one worked, the others each had a reason not to."""
    devices = {device.name: device for device in Device.objects.filter(owner=owner)}
    night_of(
        devices["Pixel on the shelf"],
        ("not_charging", 23.5, 15),
        (None, 14.2, 6.1),
        ("too_hot", 6.1, 5.2),
        (None, 5.2, 0),
    )
    night_of(devices["Kitchen tablet"], ("battery_low", 20, 0))
    night_of(devices["Work laptop"], ("outside_window", 12, 0))
    night_of(devices["Old phone with a long name that someone gave it"], (None, 7, 0))
    night_of(devices["Living room laptop"], (None, 22, 4), ("not_on_wifi", 4, 1), (None, 1, 0))
