"""The demo's path with a device killed, then the server killed: the job ends, every shard is paid exactly once."""

import pytest

from marketplace.demo.digits import load_digits
from tests.end_to_end.conftest import World, wait_until

pytestmark = [pytest.mark.end_to_end, pytest.mark.slow, pytest.mark.timeout(300)]

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


def start_job(world: World) -> str:
    path = world.folder / "digits.npz"
    load_digits().save_training(path)
    with world.client("buyer") as buyer:
        dataset = buyer.upload("datasets/", file=path, fields={"name": "digits"})
        job = buyer.post("jobs/", {**JOB, "dataset": dataset["id"]})
        buyer.post(f"jobs/{job['id']}/confirm/")
    return str(job["id"])


def test_a_job_outlives_a_killed_device_and_a_killed_server_and_is_paid_once(world: World):
    for name, throttle in [("fast", 0.6), ("slow", 0.3), ("doomed", 0.3)]:
        world.pair(name, throttle=throttle)
    job_id = start_job(world)
    with world.client("buyer") as buyer:

        def job():
            return buyer.get(f"jobs/{job_id}/")

        def closed_rounds():
            return [r for r in job()["rounds"] if r["state"] == "closed"]

        wait_until(lambda: len(closed_rounds()) >= 2, world=world)
        world.devices["doomed"].kill()
        wait_until(lambda: len(closed_rounds()) >= 4, world=world)
        world.site.kill()
        world.site.start()
        ended = wait_until(lambda: (now := job())["job"]["state"] != "running" and now, world=world)

        assert ended["job"]["state"] == "finished", ended
        assert len([r for r in ended["rounds"] if r["state"] == "closed"]) == ended["rounds_planned"]
        best = max(r["validation_metric"] for r in ended["rounds"])
        assert best >= 0.9
        model = world.folder / "model.safetensors"
        buyer.download(f"jobs/{job_id}/model/?format=safetensors", to=model)
        assert model.stat().st_size > 10_000
        wallet = buyer.get("wallet/")

    checked = world.manage("check_ledger")
    assert checked.returncode == 0, checked.stdout + checked.stderr
    story = world.manage("shell", "--no-imports", "-c", _SETTLED)
    accepted, twice, charged, spent = (int(n) for n in story.stdout.split())
    assert twice == 0
    assert accepted > 0
    assert charged == spent == 20_000_000 - wallet["wallet_microusd"]


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
