"""What the demo does, step by step, and what it says about it."""

# ruff: noqa: T201 - this is a program that talks to a person
import io
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NoReturn

import msgspec
import torch
from django.core.management import call_command
from tqdm import tqdm

from accounts.models import Device
from billing.selectors import earnings_balance, fees_balance
from common.money import format_usd
from marketplace.demo.client import Client
from marketplace.demo.devices import DeviceProcess, DeviceSpec
from marketplace.demo.digits import JOB, Digits, load_digits
from marketplace.demo.people import PASSWORD, Person, create_people
from marketplace.demo.report import Report, report_make
from marketplace.demo.site import Site
from scheduler.models import Lease

DEVICES = (
    DeviceSpec("study-laptop", throttle=1.0),
    DeviceSpec("old-laptop", throttle=0.6),
    DeviceSpec("kitchen-tablet", throttle=0.3),
)
VICTIM = "old-laptop"
POLL_S = 0.2
JOB_TIMEOUT_S = 300
KILL_TIMEOUT_S = 10


def tell(site: Site, *, folder: Path, cleanup: ExitStack, started: float) -> Report:
    """Run the demo to its report; raises if anything of it did not work."""
    print("Nightshift demo: a training job on other people's devices, on this machine.\n")
    owner, buyer = _open(site)
    devices = _pair_devices(site, owner, folder=folder, cleanup=cleanup)
    digits = load_digits()
    with Client(site.url, buyer.token) as client:
        job_id = _post_job(client, digits, folder)
        job = _follow(site, client, job_id, devices)
        model_path = folder / "model.pt2"
        client.download(f"jobs/{job_id}/model/?format=pt2", to=model_path)
        wallet = client.get("wallet/")
    model = torch.export.load(model_path).module()
    report = report_make(
        job=job,
        test_accuracy=digits.test_accuracy(model),
        killed_device=VICTIM,
        earnings_microusd={owner.email: earnings_balance(owner.user)},
        fees_microusd=fees_balance(),
        wallet_microusd=wallet["wallet_microusd"],
        ledger_check=_ledger_check(),
        model_path=str(model_path),
        server_peak_memory_bytes=site.peak_memory_bytes,
        wall_s=time.monotonic() - started,
    )
    (folder / "report.json").write_bytes(msgspec.json.format(msgspec.json.encode(report), indent=2))
    _print_report(report, folder)
    return report


def invite(site: Site) -> None:
    print(f"\nThe site is up: {site.url}")
    print(f"  as the buyer: buyer@demo.example, as the owner: owner@demo.example, password {PASSWORD}")
    print("  Ctrl-C stops it.")


def _open(site: Site) -> tuple[Person, Person]:
    call_command("migrate", verbosity=0)
    people = create_people()
    site.start()
    print(f"The site runs at {site.url}")
    return people


def _pair_devices(site: Site, owner: Person, *, folder: Path, cleanup: ExitStack) -> dict[str, DeviceProcess]:
    processes = {}
    with Client(site.url, owner.token) as client:
        for spec in DEVICES:
            code = client.post("pairing-codes/")["code"]
            process = DeviceProcess(spec, server=site.url, code=code, folder=folder, root=site.root)
            cleanup.callback(process.stop)
            processes[spec.name] = process
            print(f"  {owner.email} pairs {spec.name} (speed {spec.throttle:.0%}) with the code {code}")
    return processes


def _post_job(client: Client, digits: Digits, folder: Path) -> str:
    path = folder / "digits.npz"
    digits.save_training(path)
    dataset = client.upload("datasets/", file=path, fields={"name": "Handwritten digits"})
    print(f"\nThe buyer uploads {path.name}: {dataset['rows']} rows, {dataset['classes']} classes")
    job = client.post("jobs/", {**JOB, "dataset": dataset["id"]})
    quote = job["quote"]
    low, high, hold = (format_usd(quote[f"{figure}_microusd"]) for figure in ("low", "high", "hold"))
    print(
        f"and posts a job: {quote['rounds']} rounds, quoted {low} to {high}; {hold} is held on confirmation\n"
    )
    client.post(f"jobs/{job['id']}/confirm/")
    return str(job["id"])


def _follow(site: Site, client: Client, job_id: str, devices: dict[str, DeviceProcess]) -> dict[str, Any]:
    """Show the rounds until the job ends; half-way, one device dies."""
    job: dict[str, Any] = client.get(f"jobs/{job_id}/")
    deadline = time.monotonic() + JOB_TIMEOUT_S
    with tqdm(total=job["rounds_planned"], unit="round") as bar:
        while job["job"]["state"] == "running":
            if time.monotonic() > deadline:
                raise RuntimeError(
                    f"The job did not end in {JOB_TIMEOUT_S} s; the logs beside the report say why."
                )
            _show_rounds(bar, job)
            site.sample_memory()
            if 2 * job["rounds_done"] >= job["rounds_planned"] and devices[VICTIM].process.poll() is None:
                _kill_at_work(devices[VICTIM])
                bar.write(f"  {VICTIM} dies in round {job['rounds_done'] + 1}, with work in its hands")
            time.sleep(POLL_S)
            job = client.get(f"jobs/{job_id}/")
        _show_rounds(bar, job)
    return job


def _show_rounds(bar: "tqdm[NoReturn]", job: dict[str, Any]) -> None:
    measured = [r for r in job["rounds"] if r["validation_loss"] is not None]
    if len(measured) > bar.n:
        last = measured[-1]
        bar.set_postfix_str(f"loss {last['validation_loss']:.3f}, accuracy {last['validation_metric']:.1%}")
        bar.update(len(measured) - bar.n)


def _kill_at_work(device: DeviceProcess) -> None:
    """Kill a device while it holds a lease, so that its shard has to go to another."""
    works = Lease.objects.filter(
        device_id=Device.objects.get(name=device.spec.name).id, state=Lease.State.RUNNING
    )
    deadline = time.monotonic() + KILL_TIMEOUT_S
    while not works.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    device.kill()


def _ledger_check() -> str:
    said = io.StringIO()
    call_command("check_ledger", stdout=said)  # exits on any difference
    return said.getvalue().strip()


def _print_report(report: Report, folder: Path) -> None:
    print(f"\nThe job {report.state}: {report.rounds} rounds, {report.shards_accepted} shards accepted")
    for shard in report.reassigned:
        print(
            f"  reassigned      what {shard.left_by} left in round {shard.round} was done by {shard.done_by}"
        )
    print(f"  test accuracy   {report.test_accuracy:.2%} on {report.test_rows} digits no device has seen")
    print(f"  GPU-seconds     {report.gpu_seconds:.3f}")
    print(f"  price           {format_usd(report.price_microusd)} (hold {format_usd(report.hold_microusd)})")
    for email, amount in report.earnings_microusd.items():
        print(f"  earned          {email}: {format_usd(amount)}")
    print(f"  platform fee    {format_usd(report.fees_microusd)}")
    print(f"  ledger          {report.ledger_check}")
    print(
        f"  took            {report.wall_s:.1f} s, server at most {report.server_peak_memory_bytes / 1e6:.0f} MB"
    )
    print(f"  report          {folder / 'report.json'}")
    print(f"  model           {report.model_path}\n\nLoad it in torch:")
    print(f"  {report.load_line}")
