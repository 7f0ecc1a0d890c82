"""What the end-to-end tests have in common: a job on the digits, how it goes, and what must be true at its end."""

from dataclasses import dataclass
from typing import Any

from marketplace.demo.client import Client
from marketplace.demo.digits import load_digits
from marketplace.demo.people import GRANT_MICROUSD
from tests.end_to_end.conftest import World, wait_until

JOB = {
    "name": "digits",
    "model": {"kind": "mlp", "hidden": [64]},
    "loss": "cross_entropy",
    "optimizer": {"kind": "sgd", "learning_rate": 0.1, "momentum": 0.9},
    "batch_size": 32,
    "local_steps": 20,
    "epochs": 16,
    "validation_split": 0.1,
    "seed": 3,
    "shards_per_round": 3,
    "budget_microusd": 5_000_000,
}


@dataclass(frozen=True)
class RunningJob:
    """A confirmed job as its buyer sees it."""

    id: str
    buyer: Client
    world: World[Any]

    def look(self) -> dict[str, Any]:
        answer: dict[str, Any] = self.buyer.get(f"jobs/{self.id}/")
        return answer

    def closed_rounds(self) -> list[dict[str, Any]]:
        return [round_ for round_ in self.look()["rounds"] if round_["state"] == "closed"]

    def wait_for_rounds(self, count: int, *, timeout_s: float = 90) -> None:
        wait_until(lambda: len(self.closed_rounds()) >= count, world=self.world, timeout_s=timeout_s)

    def wait_for_headway(self) -> None:
        """Another two rounds, so that at least one was begun after what has just happened."""
        self.wait_for_rounds(len(self.closed_rounds()) + 2)

    def wait_for_end(self, *, timeout_s: float = 90) -> dict[str, Any]:
        def ended() -> dict[str, Any] | None:
            now = self.look()
            return now if now["job"]["state"] != "running" else None

        answer: dict[str, Any] = wait_until(ended, world=self.world, timeout_s=timeout_s)
        return answer


def start_job(world: World[Any], buyer: Client, **changes: Any) -> RunningJob:
    path = world.folder / "digits.npz"
    load_digits().save_training(path)
    dataset = buyer.upload("datasets/", file=path, fields={"name": "digits"})
    job = buyer.post("jobs/", {**JOB, **changes, "dataset": dataset["id"]})
    buyer.post(f"jobs/{job['id']}/confirm/")
    return RunningJob(id=str(job["id"]), buyer=buyer, world=world)


def assert_trained(job: RunningJob, *, accuracy: float = 0.9) -> None:
    """It finished all its rounds with a model that can be downloaded and is good."""
    ended = job.look()
    assert ended["job"]["state"] == "finished", ended
    assert len(job.closed_rounds()) == ended["rounds_planned"]
    assert max(round_["validation_metric"] for round_ in ended["rounds"]) >= accuracy
    model = job.world.folder / "model.safetensors"
    job.buyer.download(f"jobs/{job.id}/model/?format=safetensors", to=model)
    assert model.stat().st_size > 10_000


def assert_paid_once(world: World[Any]) -> None:
    """Each shard was accepted once at most, and the ledger holds exactly the charges of those that were."""
    checked = world.manage("check_ledger")
    assert checked.returncode == 0, checked.stdout + checked.stderr
    with world.client("buyer") as buyer:
        wallet = buyer.get("wallet/")
    story = world.manage("shell", "--no-imports", "-c", _SETTLED)
    accepted, twice, charged, spent = (int(n) for n in story.stdout.split())
    assert twice == 0
    assert accepted > 0
    assert charged == spent == GRANT_MICROUSD - wallet["wallet_microusd"]


def blamed_devices(world: World[Any]) -> list[str]:
    """Devices whose latest work counts as their failure."""
    return world.manage("shell", "--no-imports", "-c", _BLAMED).stdout.split()


# Accepted leases, shards accepted more than once, money charged for leases, money charged in the ledger.
_SETTLED = """
from django.db.models import Count, Sum
from billing.models import Posting
from scheduler.models import Lease, Shard
accepted = Lease.objects.filter(state="accepted")
twice = Shard.objects.filter(leases__state="accepted").annotate(n=Count("leases")).filter(n__gt=1)
charges = Posting.objects.filter(transfer__reason="charge", amount_microusd__lt=0)
moved = charges.aggregate(n=Sum("amount_microusd"))["n"]
print(accepted.count(), twice.count(), accepted.aggregate(n=Sum("charge_microusd"))["n"], -moved)
"""

_BLAMED = """
from accounts.models import Device
from scheduler.models import Standing
blamed = Standing.objects.filter(failures_in_a_row__gt=0).values_list("device_id", flat=True)
print(*Device.objects.filter(id__in=list(blamed)).values_list("name", flat=True))
"""
