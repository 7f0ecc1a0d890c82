"""The demo's figures, read from the database that the site wrote, not from what the demo remembers."""

from typing import Any

import msgspec
from django.db.models import Count, QuerySet, Sum

from accounts.models import Device
from common.money import US_PER_SECOND
from marketplace.demo.digits import TEST_ROWS
from marketplace.models import Job
from scheduler.models import Lease


class RoundRow(msgspec.Struct, frozen=True):
    number: int
    training_loss: float | None
    validation_loss: float | None
    validation_accuracy: float | None


class Reassigned(msgspec.Struct, frozen=True):
    """A shard that one device left and another one did."""

    round: int
    left_by: str
    done_by: str


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What `var/demo/report.json` holds."""

    state: str
    rounds: int
    round_rows: list[RoundRow]
    shards_accepted: int
    leases_by_state: dict[str, int]
    reassigned: list[Reassigned]
    samples_trained: int
    parameters: int
    delta_bytes: int
    test_accuracy: float
    test_rows: int
    gpu_seconds: float
    price_microusd: int
    hold_microusd: int
    wallet_microusd: int
    earnings_microusd: dict[str, int]
    fees_microusd: int
    ledger_check: str
    model_path: str
    load_line: str
    server_peak_memory_bytes: int
    wall_s: float


def report_make(
    *,
    job: dict[str, Any],
    test_accuracy: float,
    killed_device: str,
    earnings_microusd: dict[str, int],
    fees_microusd: int,
    wallet_microusd: int,
    ledger_check: str,
    model_path: str,
    server_peak_memory_bytes: int,
    wall_s: float,
) -> Report:
    row = Job.objects.get(id=job["job"]["id"])
    leases = Lease.objects.filter(shard__round__run=row.run_id)
    accepted = leases.filter(state=Lease.State.ACCEPTED).aggregate(
        shards=Count("id"),
        gpu_us=Sum("metered_gpu_us"),
        price=Sum("charge_microusd"),
        delta_bytes=Sum("delta_bytes"),
        samples=Sum("shard__round__run__batch_size") * row.local_steps,
    )
    rounds = [r for r in job["rounds"] if r["state"] == "closed"]
    return Report(
        state=job["job"]["state"],
        rounds=len(rounds),
        round_rows=[
            RoundRow(r["number"], r["training_loss"], r["validation_loss"], r["validation_metric"])
            for r in rounds
        ],
        shards_accepted=accepted["shards"],
        leases_by_state=dict(leases.order_by().values_list("state").annotate(Count("id"))),
        reassigned=_reassigned(leases, killed_device),
        samples_trained=accepted["samples"],
        parameters=row.parameters,
        delta_bytes=accepted["delta_bytes"],
        test_accuracy=test_accuracy,
        test_rows=TEST_ROWS,
        gpu_seconds=accepted["gpu_us"] / US_PER_SECOND,
        price_microusd=accepted["price"],
        hold_microusd=row.hold_microusd,
        wallet_microusd=wallet_microusd,
        earnings_microusd=earnings_microusd,
        fees_microusd=fees_microusd,
        ledger_check=ledger_check,
        model_path=model_path,
        load_line=f"import torch; torch.export.load({model_path!r}).module()(torch.rand(1, 64)).argmax(1)",
        server_peak_memory_bytes=server_peak_memory_bytes,
        wall_s=wall_s,
    )


def _reassigned(leases: QuerySet[Lease], left_by: str) -> list[Reassigned]:
    """The shards whose lease on the named device came to nothing, and who did them."""
    names = {device.id: device.name for device in Device.objects.all()}
    left = [
        lease.shard_id
        for lease in leases.exclude(state=Lease.State.ACCEPTED)
        if names[lease.device_id] == left_by
    ]
    done = leases.filter(shard__in=left, state=Lease.State.ACCEPTED).select_related("shard__round")
    return [Reassigned(lease.shard.round.index + 1, left_by, names[lease.device_id]) for lease in done]
