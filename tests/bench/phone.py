"""Suite `phone`: the phone app in Chromium, its WebGPU played by SwiftShader on the processor.

The app's own figures are taken at the whole site, through enrolment and a night that trains. Those of leases are of
the real worker, between a socket and blobs of this process that give it any lease; beside it stands the bare runtime,
as suite `browser` measures it.
"""

import json
import logging
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import httpx
import psutil
import torch
from playwright.sync_api import Browser

from tests.worker_protocol.test_real_devices_at_a_real_site import World  # first, as it sets Django up

# isort: split
from metal_kernels.frontend.capture import capture_training_step
from metal_kernels.runtimes.reference import initial_state
from metal_kernels.tensorfile import tensorfile_dumps, tensorfile_loads
from tests.bench.browser import PAGES, ROUNDS, STATIC, SUBJECT, Contest, measure
from tests.bench.rows import Row, beside
from tests.chromium import chromium
from tests.phone.shell.phone import Phone
from tests.phone.worker.conftest import HERE, Night
from tests.phone.worker.jobs import Job, compiled_for_processors
from tests.phone.worker.standins import Site, stand_in
from tests.static_site import static_site
from tests.worker_protocol.sites import BlobSite, blob_site
from worker_protocol.wire import messages as msg

CONTESTS: Final = (Contest("MLP", 60, {}), Contest("CNN", 12, {}))
MEMORY_LEASES, MEMORY_STEPS, WARM_UP_LEASES = 20, 50, 4
SHARD_US: Final = 10_000_000
NIGHT_S: Final = 240
# The longest time that the page's one thread was not free to answer, since this ran.
WATCH = """(() => {
    globalThis.longestTaskMs = 0;
    globalThis.longTasks = 0;
    new PerformanceObserver((list) => {
        for (const { duration } of list.getEntries()) {
            globalThis.longTasks += 1;
            globalThis.longestTaskMs = Math.max(globalThis.longestTaskMs, duration);
        }
    }).observe({ type: "longtask" });
    let last = performance.now();
    globalThis.longestLagMs = 0;
    setInterval(() => {
        const now = performance.now();
        globalThis.longestLagMs = Math.max(globalThis.longestLagMs, now - last - 10);
        last = now;
    }, 10);
})()"""
FIRST_PAINT = """performance.getEntriesByName("first-contentful-paint")[0]?.startTime"""


def run() -> list[Row]:
    for library in ("httpx", "websockets"):
        logging.getLogger(library).setLevel(logging.WARNING)
    with tempfile.TemporaryDirectory(prefix="nightshift-phone-", ignore_cleanup_errors=True) as folder:
        return [*_app_rows(Path(folder)), *_worker_rows(Path(folder))]


# ---- the app, at the whole site


def _app_rows(folder: Path) -> list[Row]:
    world = World(folder, site_module="tests.phone.shell.real_site")
    try:
        site = world.start_site()
        assert site.stdout is not None
        code = json.loads(site.stdout.readline())["codes"][0]
        with chromium() as browser:
            phone = Phone(browser.new_context(), world.url, played=False, patience_s=NIGHT_S)
            return [*_shell_rows(world.url), *_night_rows(phone, code)]
    finally:
        world.end()


def _shell_rows(url: str) -> list[Row]:
    """Everything that the service worker keeps: what comes over the wire beside what it is."""
    service_worker = httpx.get(f"{url}/device/sw.js")
    addresses = _kept(service_worker.raise_for_status().text)
    answers = [httpx.get(f"{url}{address}").raise_for_status() for address in addresses]
    return [
        beside(
            name=f"app shell, {len(answers)} files, as sent",
            value=sum(answer.num_bytes_downloaded for answer in answers) / 1000,
            unit="KB",
            reference="as it is",
            reference_value=sum(len(answer.content) for answer in answers) / 1000,
            target="<= 150",
        )
    ]


def _kept(service_worker: str) -> list[str]:
    first = service_worker.partition("\n")[0]
    addresses: list[str] = json.loads(first.removeprefix("self.shell = ").rstrip(";"))["addresses"]
    return addresses


def _night_rows(phone: Phone, code: str) -> list[Row]:
    phone.open("/device/")
    phone.wait_for(FIRST_PAINT)
    first_paint_ms = phone.js(FIRST_PAINT)
    phone.open(f"/device/#code={code}")
    phone.tap("#welcome-go")
    phone.tap("#probe-go")
    phone.until_screen("offer")
    phone.tap("#offer-go")
    phone.until_screen("home")
    phone.js(WATCH)
    phone.tap("#start")
    phone.until_screen("night")
    phone.wait_for("document.querySelector('#earned').textContent !== '$0.00'")
    time.sleep(5)
    longest_ms, lag_ms = (float(phone.js(name)) for name in ("longestTaskMs", "longestLagMs"))
    return [
        Row(name="first paint, nothing cached", value=first_paint_ms, unit="ms", target="< 1000"),
        Row(name="longest task of the page, training", value=longest_ms, unit="ms", target="<= 50"),
        Row(name="longest wait of the page's timers", value=lag_ms, unit="ms"),
    ]


# ---- the worker, between a socket and blobs that give it any lease


@dataclass(frozen=True)
class Bench:
    """A worker that is ready for leases."""

    site: Site
    blobs: BlobSite
    address: str
    browser: Browser

    def lease(self, job: Job, *, steps: int) -> tuple[msg.Result, float]:
        """What a lease brings, and the seconds from when it was sent until its result was here."""
        lease_id = str(uuid.uuid4())
        lease = msg.Lease(
            lease_id=lease_id,
            program=self.blobs.add(job.program_file),
            params=self.blobs.add(job.params),
            slice=self.blobs.add(job.slice),
            steps=steps,
            batch_size=job.batch,
            seed=1,
            learning_rate=0.01,
            time_left_ms=600_000,
            upload_url=f"{self.blobs.url}/upload-{lease_id}",
        )
        started = time.monotonic()
        self.site.says(lease)
        result = self.site.hears(msg.Result)
        took_s = time.monotonic() - started
        self.site.says(msg.Ack(lease_id=lease_id, accepted=True, earned_microusd=1))
        return result, took_s

    def memory_bytes(self) -> int:
        """What the browser's processes for pages and for the GPU hold and share with none; no other is open."""
        workers = [
            child
            for child in psutil.Process().children(recursive=True)
            if {"--type=renderer", "--type=gpu-process"} & {*child.cmdline()}
        ]
        return sum(int(worker.memory_full_info().uss) for worker in workers)


@contextmanager
def _bench(folder: Path) -> Iterator[Bench]:
    served = {"/static/": STATIC, "/phone/": HERE, "/files/": folder, "/": PAGES}
    with (
        static_site(served, policy="default-src 'self'; connect-src *") as address,
        stand_in() as site,
        blob_site() as blobs,
        chromium() as browser,
    ):
        night = Night(browser.new_page())
        night.visit(address)
        night.move(site.url)
        night.call("trust")
        night.start()
        site.hears(msg.Ready)
        yield Bench(site, blobs, address, browser)


def _worker_rows(folder: Path) -> list[Row]:
    jobs = {contest.subject: _job(contest.subject, folder) for contest in CONTESTS}
    with _bench(folder) as bench:
        rows = [_step_row(bench, contest, jobs[contest.subject]) for contest in CONTESTS]
        rows.append(_overhead_row(bench, jobs["CNN"]))
        rows.append(_memory_row(bench, jobs["MLP"]))
    return rows


def _step_row(bench: Bench, contest: Contest, job: Job) -> Row:
    """Whole leases beside whole shards of the bare runtime. Both make their pipelines before; the best counts."""
    bench.lease(job, steps=2)
    leases_ms, bare_ms = [], []
    for _ in range(ROUNDS):
        leases_ms.append(1000 * bench.lease(job, steps=contest.steps)[1] / contest.steps)
        bare = measure(bench.browser.browser_type, f"{bench.address}/nightshift.html", contest)
        bare_ms.append(bare["msPerStep"])
    return beside(
        name=f"{contest.subject} step, through the worker",
        value=min(leases_ms),
        unit="ms",
        reference="the bare runtime",
        reference_value=min(bare_ms),
    )


def _overhead_row(bench: Bench, job: Job) -> Row:
    """Parameters and slice are new to the device, its program is not: so it is in all rounds but the first."""
    known, _ = bench.lease(job, steps=4)
    steps = max(1, round(SHARD_US / (known.gpu_us / known.steps)))
    result, took_s = bench.lease(_anew(job), steps=steps)
    gpu_s = result.gpu_us / 1e6
    return beside(
        name=f"a lease of {gpu_s:.1f} s of GPU time, besides it",
        value=1000 * (took_s - gpu_s),
        unit="ms",
        reference="its GPU time",
        reference_value=1000 * gpu_s,
        target="ratio < 0.05",
    )


def _memory_row(bench: Bench, job: Job) -> Row:
    """Memory after a warm-up, and after a thousand steps more."""
    held: list[int] = []
    for leases in (WARM_UP_LEASES, MEMORY_LEASES):
        for _ in range(leases):
            bench.lease(job, steps=MEMORY_STEPS)
        held.append(bench.memory_bytes())
    return beside(
        name=f"memory after {MEMORY_LEASES * MEMORY_STEPS:,} steps more",
        value=held[1] / 1e6,
        unit="MB",
        reference=f"after the first {WARM_UP_LEASES * MEMORY_STEPS}",
        reference_value=held[0] / 1e6,
        target="ratio <= 1.05",
    )


def _job(name: str, folder: Path) -> Job:
    """A subject of suite `browser`, with the delta's kernels, and in the files where its page looks for it."""
    torch.manual_seed(0)
    subject = SUBJECT[name]
    module, inputs, targets = subject.module(), subject.inputs(), subject.target()
    program = capture_training_step(
        module,
        loss="cross_entropy",
        optimizer=subject.optimizer,
        example_inputs=[inputs],
        example_target=targets,
    )
    start = initial_state(module, program)
    job = Job(
        program=program,
        program_file=compiled_for_processors(program),
        params=tensorfile_dumps({key: start[key] for key in program.model_spec}),
        slice=tensorfile_dumps({"inputs": inputs, "targets": targets}),
        batch=len(inputs),
    )
    files = {"program": job.program_file, "params": job.params, "slice": job.slice}
    for kind, data in files.items():
        (folder / f"{name.lower()}.{kind}").write_bytes(data)
    return job


def _anew(job: Job) -> Job:
    """Other parameters and rows of the same shapes."""
    params = {key: tensor * 0.99 for key, tensor in tensorfile_loads(job.params).tensors.items()}
    rows = tensorfile_loads(job.slice).tensors
    return replace(
        job,
        params=tensorfile_dumps(params),
        slice=tensorfile_dumps({"inputs": rows["inputs"] * 0.99, "targets": rows["targets"]}),
    )
