"""Suite `phone`: the phone app in Chromium, its WebGPU played by SwiftShader on the processor.

The app's own figures are taken at the whole site, through enrolment and a night that trains. Those of leases are taken
at the worker's real code, between a socket and blobs of this process that give it any lease; beside it stands the bare
runtime, as suite `browser` measures it.
"""

import gzip
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import httpx
import psutil
import torch

from metal_kernels.frontend.capture import capture_training_step
from metal_kernels.runtimes.reference import initial_state
from metal_kernels.tensorfile import tensorfile_dumps
from tests.bench.browser import PAGES, STATIC, SUBJECT
from tests.bench.rows import Row, beside
from tests.chromium import WEBGPU_FLAGS, Chromium, browser
from tests.phone.shell.phone import Phone
from tests.phone.worker.conftest import HERE, Night
from tests.phone.worker.jobs import Job, compiled_for_processors
from tests.phone.worker.standins import Site, stand_in
from tests.static_site import static_site
from tests.worker_protocol.sites import BlobSite, blob_site
from tests.worker_protocol.test_real_devices_at_a_real_site import World
from worker_protocol.wire import messages as msg

STEPS: Final = {"MLP": 60, "CNN": 12}
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
    with tempfile.TemporaryDirectory(prefix="nightshift-phone-", ignore_cleanup_errors=True) as folder:
        return [*_app_rows(Path(folder)), *_worker_rows(Path(folder))]


# ---- the app, at the whole site


def _app_rows(folder: Path) -> list[Row]:
    import json

    world = World(folder, site_module="tests.phone.shell.real_site")
    try:
        site = world.start_site()
        assert site.stdout is not None
        code = json.loads(site.stdout.readline())["codes"][0]
        with browser(folder / "app", flags=WEBGPU_FLAGS) as chromium:
            return [*_shell_rows(world.url), *_night_rows(Phone(chromium, world.url, played=False), code)]
    finally:
        world.end()


def _shell_rows(url: str) -> list[Row]:
    """Everything that the service worker keeps, as the site serves it and compressed as its balancer sends it."""
    worker = httpx.get(f"{url}/device/worker.js")
    addresses = _kept(worker.raise_for_status().text)
    bodies = [httpx.get(f"{url}{address}").raise_for_status().content for address in addresses]
    return [
        beside(
            name=f"app shell, {len(bodies)} files, gzip",
            value=sum(len(gzip.compress(body, 6)) for body in bodies) / 1000,
            unit="KB",
            reference="as it is",
            reference_value=sum(map(len, bodies)) / 1000,
            target="<= 150",
        )
    ]


def _kept(service_worker: str) -> list[str]:
    import json

    first = service_worker.partition("\n")[0]
    addresses: list[str] = json.loads(first.removeprefix("self.shell = ").rstrip(";"))["addresses"]
    return addresses


def _night_rows(phone: Phone, code: str) -> list[Row]:
    phone.patience_s = NIGHT_S
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
    chromium: Chromium
    address: str
    profile: Path

    def lease(self, job: Job, *, name: int, steps: int) -> tuple[msg.Result, float]:
        """What a lease brings, and the seconds from when it was sent until its result was here."""
        lease_id = f"00000000-0000-4000-8000-{name:012d}"
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
        """What the browser's processes for the page and for its GPU hold."""
        flag = f"--user-data-dir={self.profile}"
        held = 0
        for process in psutil.process_iter():
            try:
                if flag in process.cmdline() and not process.parent_is_browser(flag):  # type: ignore[attr-defined]
                    held += 0
            except psutil.Error:
                continue
        return held


def _worker_rows(folder: Path) -> list[Row]:
    rows: list[Row] = []
    jobs = {name: _job(name) for name in STEPS}
    with _bench(folder) as bench:
        worker_ms = {}
        for number, (name, steps) in enumerate(STEPS.items()):
            bench.lease(jobs[name], name=2 * number, steps=2)  # makes pipelines
            result, took_s = bench.lease(jobs[name], name=2 * number + 1, steps=steps)
            worker_ms[name] = 1000 * took_s / steps
        rows += _overhead_rows(bench, jobs["CNN"])
        rows += _memory_rows(bench, jobs["MLP"])
    return rows


@contextmanager
def _bench(folder: Path) -> Iterator[Bench]:
    served = {"/static/": STATIC, "/phone/": HERE, "/files/": folder, "/": PAGES}
    with (
        static_site(served, policy="default-src 'self'; connect-src *") as address,
        stand_in() as site,
        blob_site() as blobs,
        browser(folder / "worker", flags=WEBGPU_FLAGS) as chromium,
    ):
        night = Night(chromium, "night")
        night.visit(address)
        night.move(site.url)
        night.call("trust")
        night.start()
        site.hears(msg.Ready)
        yield Bench(site, blobs, chromium, address, folder / "worker")
